"""LEAF's folders as others may have made them: something odd in each place of their JSON, odd texts, odd files."""

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scripts.fuzz.judged import Input
from scripts.fuzz.users_files import Prepare, damaged, run_on

NAN, INF = float("nan"), float("inf")
DEEP = [[[[3]]]]
ODD: dict[str, Any] = {
    **{repr(odd): odd for odd in (None, True, -1, 0, 1.5, 10**20, 10**400, 9999, 1e300, NAN, INF, "", "x", "é", "3")},
    **{repr(odd): odd for odd in ([], [[]], [3], [[3]], [NAN], {}, {"a": 1}, [None], ["x"], [1, [2]], DEEP)},
    "a NUL": "\0",
    "a surrogate": "\ud800",
    "a long text": "x" * 10_000,
}
NAMES = {
    "femnist": lambda number: ([number % 3 / 3] * 784, number % 3),
    "shakespeare": lambda number: ("abcdefgh"[number % 8] * 80, "abc"[number % 3]),
    "synthetic": lambda number: ([number / 3, 1.0, -2.0], number % 3),
}
USERS = {"train": 3, "test": 2}
EXAMPLES = 4


def leaf_folders() -> Iterator[Input]:
    """Everything odd in every place of every kind of LEAF's files, other texts and files, and damaged ones."""
    for name in NAMES:
        for part in USERS:
            for place in _places(_content(name, part)):
                for what, odd in ODD.items():
                    yield _changed(name, part, place, what, odd)
        for what, text in TEXTS.items():
            yield _texts(name, what, text)
        for what, prepare in FILES.items():
            yield _leaf(name, what, prepare)
        for number in range(60):
            yield _texts(name, f"damage {number}", lambda text, number=number: damaged(text, number))


def _content(name: str, part: str) -> dict[str, Any]:
    users = [f"user {number}" for number in range(USERS[part])]
    examples = [NAMES[name](number) for number in range(EXAMPLES)]
    data = {user: {"x": [x for x, _ in examples], "y": [y for _, y in examples]} for user in users}
    return {"users": users, "num_samples": [EXAMPLES] * len(users), "user_data": data}


def _places(content: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Where something may be odd: every kind of place once, and lists by their second value."""
    found: list[tuple[Any, ...]] = [(), ("users",), ("users", 1), ("num_samples",), ("num_samples", 1), ("user_data",)]
    user = next(iter(content["user_data"]))
    for key in ("x", "y"):
        found += [("user_data", user, key), ("user_data", user, key, 1)]
    if isinstance(content["user_data"][user]["x"][1], list):
        found.append(("user_data", user, "x", 1, 1))
    return [*found, ("user_data", user)]


def _changed(name: str, part: str, place: tuple[Any, ...], what: str, odd: Any) -> Input:
    def prepare(folder: Path) -> None:
        _write(folder, name)
        holder = content = copy.deepcopy(_content(name, part))
        for key in place[:-1]:
            holder = holder[key]
        if place:
            holder[place[-1]] = odd
        (folder / part / "all.json").write_text(json.dumps(content if place else odd))

    where = ".".join(map(str, place)) or "all"
    return _leaf(name, f"{where} = {what} in {part}", prepare)


def _texts(name: str, what: str, change: Callable[[bytes], bytes]) -> Input:
    def prepare(folder: Path) -> None:
        _write(folder, name)
        file = folder / "train" / "all.json"
        file.write_bytes(change(file.read_bytes()))

    return _leaf(name, what, prepare)


def _leaf(name: str, what: str, prepare: Prepare) -> Input:
    words = ("dataset=leaf", f"dataset.name={name}", "dataset.path=mine", "model=logistic")
    if name == "shakespeare":
        words = (*words[:-1], "model=char_lstm", "model.hidden=4")
    return run_on(prepare, what, *words)


def _write(folder: Path, name: str) -> None:
    for part in USERS:
        (folder / part).mkdir(exist_ok=True)
        (folder / part / "all.json").write_text(json.dumps(_content(name, part)))


TEXTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "a blank": lambda _: b" ",
    "cut": lambda text: text[: len(text) // 2],
    "twice": lambda text: text + text,
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "Latin-1": lambda text: text.decode().replace("user", "üser").encode("latin-1"),
    "a comma too many": lambda text: text.replace(b"]", b",]", 1),
    "a comment": lambda text: b"// x\n" + text,
    "a deep nest": lambda _: b"[" * 100_000,
    "a user twice": lambda text: text.replace(b"user 1", b"user 0"),
    "user_data twice": lambda text: text[:-1] + b', "user_data": {}}',
    "a long number": lambda text: text.replace(b"[4", b"[" + b"9" * 5000, 1),
    "noise": lambda _: bytes(range(256)) * 10,
    "no users": lambda _: b'{"users": [], "num_samples": [], "user_data": {}}',
    "more keys": lambda text: text[:-1] + b', "hierarchies": [1, 2], "more": null}',
}


def _beside(name: str, content: bytes) -> Prepare:
    def prepare(folder: Path) -> None:
        _write(folder, "synthetic")
        (folder / "train" / name).write_bytes(content)

    return prepare


def _replaced(change: Callable[[Path], object]) -> Prepare:
    def prepare(folder: Path) -> None:
        _write(folder, "synthetic")
        (folder / "test" / "all.json").unlink()
        change(folder / "test" / "all.json")

    return prepare


FILES: dict[str, Prepare] = {
    "nothing": lambda _: None,
    "folders without files": lambda folder: any((folder / part).mkdir() for part in USERS),
    "no test": lambda folder: (folder / "train").mkdir(),
    "the same users in two files": _beside("more.json", json.dumps(_content("synthetic", "train")).encode()),
    "another empty file": _beside("more.json", b""),
    "a hidden file": _beside(".hidden.json", b"x"),
    "another ending": _beside("more.txt", b"x"),
    "data of another name": lambda folder: _write(folder, "shakespeare"),
    "a folder as a file": _replaced(Path.mkdir),
    "a pipe": _replaced(os.mkfifo),
    "a link to nowhere": _replaced(lambda path: path.symlink_to("nowhere")),
    "a link to itself": _replaced(lambda path: path.symlink_to(path.name)),
    "a file as a folder": lambda folder: (folder / "train").write_text("x"),
}
