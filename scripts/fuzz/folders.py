"""Damages run folders in every way that comes to mind, and asks every command that reads them what it makes of it.

    python scripts/fuzz/folders.py                       # 3,000 damages
    python scripts/fuzz/folders.py --damages 200 --commands verify resume

A command must go on with what is whole, or end with one line and the exit code 1 or 2: never with a traceback. A run
that is resumed must end with all its rounds. Ends with `0 of N fall short`, else with exit code 1 and what fell short.
"""

import argparse
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedexp.cli import main as fedexp

ROUNDS = 3
WORDS = (
    *("dataset=synthetic", "dataset.train_size=90", "dataset.test_size=30", "dataset.shape=[4]", "dataset.classes=3"),
    *("scenario.clients=5", "scenario.participants=2", f"rounds={ROUNDS}", "fleet=simulated", "engine=loop"),
    *("evaluation.validation=true", "engine.workers=1", "pictures=false", "keep_states=2", "checkpoint_s=0"),
)
TABLES = ("metrics.csv", "clients.csv", "digests.csv", "federation.csv")
STATES = ("state.pt", "state.previous.pt", "states/000002.pt")
NOTED = ("config.json", ".hydra/config.yaml", ".hydra/hydra.yaml", ".hydra/overrides.yaml")
MINE = "conf/experiment/mine.yaml"
FILES = (*TABLES, *STATES, *NOTED, "summary.json")
ODD_TEXTS = ("", "x", "-1", "0", "1.5", "nan", "inf", "1e999", "99999999999999999999", "true", '"', "é", "null", "[]")
ODD_VALUES = (None, True, -1, 0, 1.5, 10**20, float("inf"), "", "x", [], {}, [1], {"a": 1}, "${nothing}", "???", "é")


@dataclass(frozen=True)
class Damage:
    """What is done to which file, in words that do it again."""

    file: str
    kind: str
    place: float  # where, as a share of what there is
    odd: int  # which odd value


def damages(files: tuple[str, ...]) -> st.SearchStrategy[Damage]:
    """Any damage of one of these files."""
    share = st.floats(0, 1, exclude_max=True)
    kinds = st.sampled_from(files).flatmap(lambda file: st.tuples(st.just(file), st.sampled_from(sorted(_kinds(file)))))
    odd = st.integers(0, len(ODD_VALUES) - 1)
    return st.builds(lambda which, place, odd: Damage(which[0], which[1], place, odd), kinds, share, odd)


def inflict(folder: Path, damage: Damage) -> None:
    """Does it."""
    path = folder / damage.file
    if path.exists():
        _kinds(damage.file)[damage.kind](path, damage)


def _kinds(file: str) -> dict[str, Callable[[Path, Damage], None]]:
    plain = {"gone": _gone, "emptied": _emptied, "cut": _cut, "flipped": _flipped, "encoded": _encoded, "noise": _noise}
    if file.endswith(".csv"):
        return {**plain, "cell": _cell, "column": _column, "line": _line, "twice": _twice}
    read = {".pt": _state, ".yaml": _yaml, ".json": _json}[Path(file).suffix]
    return {**plain, "value": read, "lacking": read}


def _gone(path: Path, _: Damage) -> None:
    path.unlink()


def _emptied(path: Path, _: Damage) -> None:
    path.write_bytes(b"")


def _cut(path: Path, damage: Damage) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: int(damage.place * len(raw))])


def _flipped(path: Path, damage: Damage) -> None:
    raw = bytearray(path.read_bytes())
    raw[int(damage.place * len(raw))] ^= 1 << damage.odd % 8
    path.write_bytes(raw)


def _encoded(path: Path, damage: Damage) -> None:
    text = path.read_bytes().decode("latin-1")
    path.write_bytes(text.encode(("utf-16", "utf-32", "utf-8-sig")[damage.odd % 3]))


def _noise(path: Path, damage: Damage) -> None:
    raw = path.read_bytes()
    place = int(damage.place * len(raw))
    path.write_bytes(raw[:place] + bytes([255, 0, 10, 34, 13][damage.odd % 5 :]) + raw[place + 1 :])


def _cell(path: Path, damage: Damage) -> None:
    rows = [row.split(",") for row in path.read_text().splitlines()]
    row = rows[int(damage.place * len(rows))]
    row[int(damage.place * 7919) % len(row)] = ODD_TEXTS[damage.odd % len(ODD_TEXTS)]
    _write(path, rows)


def _column(path: Path, damage: Damage) -> None:
    rows = [row.split(",") for row in path.read_text().splitlines()]
    gone = int(damage.place * len(rows[0]))
    _write(path, [[*row[:gone], *row[gone + 1 :]] for row in rows])


def _line(path: Path, damage: Damage) -> None:
    rows = path.read_text().splitlines(True)
    del rows[int(damage.place * len(rows))]
    path.write_text("".join(rows))


def _twice(path: Path, damage: Damage) -> None:
    rows = path.read_text().splitlines(True)
    place = int(damage.place * len(rows))
    path.write_text("".join([*rows[: place + 1], *rows[place:]]))


def _write(path: Path, rows: list[list[str]]) -> None:
    path.write_text("".join(",".join(row) + "\n" for row in rows))


def _yaml(path: Path, damage: Damage) -> None:
    path.write_text(yaml.safe_dump(_changed(yaml.safe_load(path.read_text()), damage)))


def _json(path: Path, damage: Damage) -> None:
    path.write_text(json.dumps(_changed(json.loads(path.read_text()), damage)))


def _state(path: Path, damage: Damage) -> None:
    torch.save(_changed(torch.load(path, weights_only=True), damage), path)


def _changed(node: Any, damage: Damage) -> Any:
    """The nest with one of its entries odd or lacking, or odd as a whole."""
    places = [*_entries(node)]
    if not places or damage.place > 0.98:
        return ODD_VALUES[damage.odd]
    holder, key = places[int(damage.place * len(places))]
    if damage.kind == "lacking":
        del holder[key]
    else:
        holder[key] = ODD_VALUES[damage.odd]
    return node


def _entries(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested mappings and lists."""
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from _entries(node[key])


@dataclass(frozen=True)
class Ground:
    """The whole folders that copies are made of."""

    run: Path
    other: Path


def ground(place: Path) -> Ground:
    """Makes two runs of two methods, and a folder of own options."""
    for name, selector in (("run", "random"), ("other", "all")):
        with _quiet():
            code = fedexp(["run", *WORDS, f"selector={selector}", f"hydra.run.dir={place / name}"])
        if code:
            raise RuntimeError(f"the run to be damaged ended with {code}")
    (place / "run" / MINE).parent.mkdir(parents=True)
    words = {"rounds": 2, "scenario": {"clients": 4, "participants": 2}, "local": {"lr": 0.05}, "checkpoint_s": 9}
    (place / "run" / MINE).write_text(f"# @package _global_\n{yaml.safe_dump(words)}")
    return Ground(place / "run", place / "other")


def _resume(folder: Path, _: Ground) -> list[str]:
    (folder / "summary.json").unlink(missing_ok=True)
    return ["resume", str(folder)]


COMMANDS: dict[str, tuple[tuple[str, ...], Callable[[Path, Ground], list[str]]]] = {
    "resume": (tuple(name for name in FILES if name != "summary.json"), _resume),
    "finished": (FILES, lambda folder, _: ["resume", str(folder)]),
    "verify": (FILES, lambda folder, _: ["verify", str(folder), "--rounds", "1"]),
    "report": ((*TABLES, *NOTED, "summary.json"), lambda folder, _: ["report", str(folder)]),
    "compare": (
        (*TABLES, *NOTED, "summary.json"),
        lambda folder, whole: [
            *("compare", str(folder), "--against", str(whole.other), "--out", str(folder.parent / "compare.md")),
            *("--measures", "test_accuracy,loss_auc"),
        ],
    ),
    "plan": (
        (MINE,),
        lambda folder, _: ["plan", *WORDS[:3], "experiment=mine", "--config-dir", str(folder / "conf")],
    ),
}


def shortcoming(whole: Ground, command: str, damage: Damage) -> str:
    """What the command did that it must not, with a copy that was damaged so; empty where it did well."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        shutil.copytree(whole.run, folder)
        inflict(folder, damage)
        words = COMMANDS[command][1](folder, whole)
        try:
            with _quiet() as said:
                code = fedexp(words)
        except BaseException as error:
            return f"{type(error).__name__} left the command: {error}"
        told = said.getvalue().splitlines()
        complaints = [
            line for line in told if command != "plan" or line.startswith("fedexp: ")
        ]  # it tells how far it is
        if code not in (0, 1, 2) or len(complaints) != (code != 0) or any("Traceback" in line for line in told):
            return f"exit code {code} with {len(complaints)} lines on stderr: {' / '.join(told)[-500:]}"
        return _gap(folder) if command == "resume" and not code else ""


def _gap(folder: Path) -> str:
    rows = (folder / "metrics.csv").read_text().splitlines()[1:]
    rounds = [row.split(",")[0] for row in rows]
    asked = [str(number) for number in range(1, ROUNDS + 1)]
    return "" if rounds == asked else f"resumed to a table of the rounds {', '.join(rounds)}"


@contextmanager
def _quiet() -> Iterator[io.StringIO]:
    """What is said on stderr, and nothing on the screen."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        yield said


def tried(whole: Ground, command: str, examples: int) -> tuple[int, dict[str, Damage]]:
    """So many damages for a command: how many there were, and those that it did not bear, by what it did."""
    count, short = 0, {}

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(damages(COMMANDS[command][0]))
    def attempt(damage: Damage) -> None:
        nonlocal count
        count += 1
        if what := shortcoming(whole, command, damage):
            short[what] = damage

    attempt()
    return count, short


def main() -> int:
    """Tries them all and tells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--damages", type=int, default=3000)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    asked = parser.parse_args()
    total, short = 0, 0
    with tempfile.TemporaryDirectory() as place:
        whole = ground(Path(place))
        for command in asked.commands:
            count, found = tried(whole, command, -(-asked.damages // len(asked.commands)))
            total, short = total + count, short + len(found)
            print(f"{command}: {len(found)} of {count}", flush=True)
            for what, damage in found.items():
                print(f"  {damage}\n    {what}", flush=True)
    print(f"{short} of {total} fall short")
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
