"""Run folders that are damaged in every way that comes to mind, and every command that reads them.

A command goes on with what is whole, or says in one line what is not. A run that is resumed ends with all its rounds.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import yaml

from fedexp import cli
from scripts.fuzz.judged import Input, nothing

ROUNDS = 3
DAMAGES = 500  # of each command
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


def damages() -> Iterator[Input]:
    """Every command with many damages of the files that it reads."""
    for command in COMMANDS:
        yield from drawn(command, DAMAGES)


def drawn(command: str, count: int) -> Iterator[Input]:
    """A command with so many damages, always the same ones."""
    rng, (files, _) = np.random.default_rng(0), COMMANDS[command]
    for _ in range(count):
        file = files[rng.integers(len(files))]
        kinds = sorted(_kinds(file))
        kind = kinds[rng.integers(len(kinds))]
        yield damaged(command, Damage(file, kind, float(rng.random()), int(rng.integers(len(ODD_VALUES)))))


def damaged(command: str, damage: Damage) -> Input:
    """A command with a copy of the whole run that was damaged so."""
    words = COMMANDS[command][1]

    def prepare(folder: Path) -> None:
        shutil.copytree(whole(), folder, dirs_exist_ok=True)
        inflict(folder / "run", damage)
        if command == "resume":
            (folder / "run" / "summary.json").unlink()

    name = f"fedexp {' '.join(words)}  ({command} a run with {damage})"
    demand = all_rounds if command == "resume" else nothing
    return Input(name, lambda: cli.main(words), demand, prepare, tells=command == "plan")


def all_rounds(folder: Path) -> str:
    """What is wrong with a run that was resumed: it says that all is well, but some rounds are missing."""
    if (folder / "said.txt").read_text():
        return ""
    rows = (folder / "run" / "metrics.csv").read_text().splitlines()[1:]
    rounds = [row.split(",")[0] for row in rows]
    expected = [str(number) for number in range(1, ROUNDS + 1)]
    return "" if rounds == expected else f"resumed to a table of the rounds {', '.join(rounds)}"


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


@cache
def whole() -> Path:
    """A folder with two whole runs of two methods, `run` with an experiment of the user's own, and `other`."""
    place = Path(SCRATCH.name)
    for name, selector in (("run", "random"), ("other", "all")):
        if code := cli.main(["run", *WORDS, f"selector={selector}", f"hydra.run.dir={place / name}"]):
            raise RuntimeError(f"the run to be damaged ended with {code}")
    run, other = str(place / "run"), str(place / "other")
    cli.main(["verify", run])  # what every copy would have to import is imported here
    cli.main(["report", run, "--out", str(place / "page.html")])
    cli.main(["compare", run, "--against", other, "--out", str(place / "page.md")])
    (place / "run" / MINE).parent.mkdir(parents=True)
    keys = {"rounds": 2, "scenario": {"clients": 4, "participants": 2}, "local": {"lr": 0.05}, "checkpoint_s": 9}
    (place / "run" / MINE).write_text(f"# @package _global_\n{yaml.safe_dump(keys)}")
    return place


SCRATCH = TemporaryDirectory()
SHOWN = (*TABLES, *NOTED, "summary.json")
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # the files that it reads, and its words
    "resume": (tuple(name for name in FILES if name != "summary.json"), ("resume", "run")),
    "finished": (FILES, ("resume", "run")),
    "verify": (FILES, ("verify", "run", "--rounds", "1")),
    "report": (SHOWN, ("report", "run")),
    "compare": (
        SHOWN,
        ("compare", "run", "--against", "other", "--out", "compare.md", "--measures", "test_accuracy,loss_auc"),
    ),
    "plan": ((MINE,), ("plan", *WORDS[:3], "experiment=mine", "--config-dir", "run/conf")),
}
