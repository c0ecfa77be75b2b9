"""LEAF's JSON files: folders `train` and `test` of files with users and their examples.

Caldas et al., "LEAF: a benchmark for federated settings", 2018, arXiv:1812.01097. A file holds `users`, `num_samples`
and `user_data`: for each user `x` and `y` of equal length. Each user is in one file of a part. Files are parsed once;
the arrays are kept in the cache under the files' sizes and times. Legend: S examples.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.data.pile import Pile
from fedexp.data.store import Arrays, cached, stamp

PARTS = ("train", "test")
MOST = 10_000  # classes: with more, a label is hardly one
LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"  # LEAF's, in its order
NUMBER = {letter: number for number, letter in enumerate(LETTERS)}

Examples = Callable[[list[Any]], np.ndarray]


def files(folder: Path) -> dict[str, list[Path]]:
    """The JSON files of both parts, in alphabetical order.

    Raises:
        ConfigError: a part has none, or what is named like one is no file.
    """
    found = {part: sorted((folder / part).glob("*.json")) for part in PARTS}
    for part, names in found.items():
        if not names:
            raise ConfigError(
                f"no JSON files in {folder / part}; dataset.path must be a folder that LEAF has made, with "
                "train/*.json and test/*.json"
            )
        if odd := next((path for path in names if not path.is_file()), None):
            raise ConfigError(f"{odd} must be a file, but is a folder, a pipe, or a link that leads nowhere; remove it")
    return found


def arrays(folder: Path, name: str, x: Examples, y: Examples) -> Arrays:
    """`x_train y_train user_train x_test y_test user_test`; users are numbered in the order of their names."""
    return _kept(folder, name, x, y, stamp(*(path for paths in files(folder).values() for path in paths)))


@lru_cache(maxsize=1)  # in this process, too: facts and examples are asked for one after the other
def _kept(folder: Path, name: str, x: Examples, y: Examples, state: tuple[tuple[str, int, int], ...]) -> Arrays:
    key = hashlib.sha256(repr(state).encode()).hexdigest()[:16]
    return cached(f"leaf-2-{name}-{key}", lambda: _parsed(files(folder), x, y))


def _parsed(listed: dict[str, list[Path]], x: Examples, y: Examples) -> Arrays:
    made: Arrays = {}
    owners: dict[str, list[str]] = {}
    for part, paths in listed.items():
        made[f"x_{part}"], made[f"y_{part}"], owners[part] = _piled(paths, x, y)
    names = sorted({name for part in owners.values() for name in part})  # not by NumPy, which cuts NULs off
    number = {name: place for place, name in enumerate(names)}
    for part, own in owners.items():
        made[f"user_{part}"] = np.array([number[name] for name in own], np.int64)
    return made


def _piled(paths: list[Path], x: Examples, y: Examples) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Examples, labels and users `[S]` of one part; memory holds one file at a time."""
    owners: list[str] = []
    seen: dict[str, Path] = {}
    wide: int | None = None
    with Pile() as examples, Pile() as classes:
        for path in paths:
            for name, own, known in _users(path, x, y):
                if name in seen:
                    raise ConfigError(f"user {_brief(name)} is in both {seen[name]} and {path}; remove one of them")
                wide = own.shape[1] if wide is None else wide
                if own.shape[1] != wide:
                    raise ConfigError(
                        f"all examples in {path.parent} must have {wide} entries like the first, but user "
                        f"{_brief(name)} in {path.name} has some of {own.shape[1]}"
                    )
                seen[name] = path
                examples.add(own)
                classes.add(known)
                owners += [name] * len(known)
        if not owners:
            raise ConfigError(f"{paths[0].parent} must hold an example, but no user has one")
        return examples.whole(), classes.whole(), owners


def _users(path: Path, x: Examples, y: Examples) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, examples and labels of each user who has some."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)["user_data"]
        for name, own in data.items():
            if len(own["x"]) != len(own["y"]):
                raise ValueError(f"user {_brief(name)} has {len(own['x'])} examples and {len(own['y'])} labels")
            if own["y"]:
                yield name, x(own["x"]), y(own["y"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"{path} is not a file of LEAF: {said}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a name that comes twice is refused, as the reader would keep its last value alone."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"{_brief(twice)} comes twice in one object")
    return found


def numbers(values: list[Any]) -> np.ndarray:
    """Lists of numbers as float32 `[S, d]`."""
    with np.errstate(over="ignore"):
        found = np.asarray(values, np.float32)
    if found.ndim != 2 or not found.shape[1] or not np.isfinite(found).all():
        raise ValueError(f"examples must be lists of equally many finite numbers, got {_brief(values[0])}")
    return found


def labels(values: list[Any]) -> np.ndarray:
    """Classes as int64 `[S]`."""
    found = np.asarray(values, np.float64)
    if found.ndim != 1:
        raise ValueError(f"labels must be numbers, got {_brief(values[0])}")
    odd = ~((found >= 0) & (found < MOST) & (np.floor(found) == found))
    if odd.any():
        raise ValueError(f"labels must be whole numbers from 0 to {MOST - 1:,}, got {found[odd][0]:g}")
    return found.astype(np.int64)


def letters(values: list[Any]) -> np.ndarray:
    """Texts of one length as int64 `[S, L]`."""
    widths = {len(text) for text in values}
    if len(widths) != 1:
        raise ValueError(f"texts must have one length, got {min(widths)} to {max(widths)} characters")
    text = "".join(values)
    if odd := next((letter for letter in text if letter not in NUMBER), None):
        raise ValueError(f"its alphabet of {len(LETTERS)} letters has no {odd!r}")
    return np.array([NUMBER[letter] for letter in text], np.int64).reshape(len(values), -1)


def letter(values: list[Any]) -> np.ndarray:
    """Single letters as int64 `[S]`."""
    found = letters(values)
    if found.shape[1] != 1:
        raise ValueError(f"a label must be one letter, got {_brief(values[0])}")
    return found[:, 0]


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}..."
