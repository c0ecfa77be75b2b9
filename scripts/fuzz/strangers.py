"""Folders as a stranger may make them: links, pipes, bombs, deep nests, foreign classes, Hydra's own keys."""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from fedexp import cli
from fedexp.core.nested import walk
from fedexp.run import run as execution
from scripts.forked import outcome
from scripts.fuzz.judged import Input
from tests.command_line import Recorder
from tests.hostile import KINDS, replaced
from tests.run.test_strange_folders import CONFIGS, FILES, MODULE, PLACES, YAMLS, killed_run
from tests.sweep.test_strange_sweeps import POPEN, hydra_keys

COMMANDS = {
    "resume": ("resume", "run"),
    "verify": ("verify", "run"),
    "report": ("report", "run", "--out", "page.html"),
    "compare": ("compare", "run", "--against", "whole", "--out", "page.md"),
}
OURS = {"run", "whole", "mine.txt", "said.txt", "cache", "no data", "stranger.py", "many", "__pycache__"}
MADE = {"page.html", "page.md", "outputs", "page"}
HYDRA = (
    *(POPEN, "../elsewhere", "/tmp/elsewhere", ["pkg://stranger"], 10**20, None, "", [], {}, True, "${oc.env:HOME}"),
    {"x": {"class": "logging.FileHandler", "filename": "elsewhere", "_target_": "stranger.X"}},
)
WORDS = (
    ("", "../x"),
    ("+", "null"),
    ("++", "{class: subprocess.Popen, _target_: stranger.X}"),
    ("~", "[pkg://stranger]"),
)


def folders() -> Iterator[Input]:
    """A run folder with something odd in it, and each command that reads it."""
    for command in COMMANDS:
        for what, prepare in _oddities():
            yield _folder(command, what, prepare)


def _oddities() -> Iterator[tuple[str, Callable[[Path], None]]]:
    for name, kind in (*product(FILES, KINDS), *product(PLACES, ["link"])):
        yield f"{name} as {kind}", _replacing(name, kind)
    for (name, text), file in product(YAMLS.items(), ("config", "hydra", "overrides")):
        yield f"{file}.yaml as {name}", _writing(f".hydra/{file}.yaml", text)
    for name, text in CONFIGS.items():
        yield f"config.json as {name}", _writing("config.json", text)
    content = json.loads((killed_run() / "config.json").read_text())
    for key, value in walk(content):
        for odd in (10**20, None, "", "${oc.env:HOME}", [], {}, ["x"], {"x": {"_target_": "stranger.X"}}):
            yield f"{key} = {json.dumps(odd)} in config.json", _setting(content, key, odd)
        if isinstance(value, dict) and "_target_" in value:
            yield f"{key}._target_ = stranger.X", _setting(content, f"{key}._target_", "stranger.X")


def _folder(command: str, what: str, prepare: Callable[[Path], None]) -> Input:
    def prepared(folder: Path) -> None:
        for name in ("run", "whole"):
            shutil.copytree(killed_run(), folder / name)
        (folder / "mine.txt").write_text("mine")
        (folder / "stranger.py").write_text(MODULE.format(str(folder / "imported")))
        prepare(folder)

    words = COMMANDS[command]
    return Input(f"fedexp {' '.join(words)}  (a run with {what})", lambda: _as_user(words), _untouched, prepared, 20)


def _as_user(words: tuple[str, ...]) -> int:
    """The command, where Python finds modules in the working directory."""
    sys.path.insert(0, str(Path.cwd()))
    return cli.main(words)


def _untouched(folder: Path) -> str:
    odd = {path.name for path in folder.iterdir()} - OURS - MADE
    if odd:
        return f"left {', '.join(sorted(odd))}"
    mine = folder / "mine.txt"
    return "" if not mine.exists() or mine.read_text() == "mine" else "wrote into a file of somebody else's"


def _replacing(name: str, kind: str) -> Callable[[Path], None]:
    return lambda folder: replaced(folder / "run" / name, kind, folder / "mine.txt")


def _writing(name: str, text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "run" / name).write_bytes(text.encode(errors="surrogateescape"))

    return write


def _setting(content: dict[str, Any], key: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: _writing("config.json", json.dumps(_with(content, key, value)))(folder)


def sweeps() -> Iterator[Input]:
    """A sweep whose `multirun.yaml` says something else under each key of Hydra, or in its words."""
    saved = _saved()
    for key in hydra_keys(saved):
        if "/" not in key:
            for value in HYDRA:
                yield _sweep(saved, f"{key} = {json.dumps(value)}", key, value)
            for sign, value in WORDS:
                word = f"{sign}{key}={value}"
                words = {"task": saved["hydra"]["overrides"]["task"], "hydra": [word]}
                yield _sweep(saved, f"the word {word}", "hydra.overrides", words)


def _sweep(saved: dict[str, Any], what: str, key: str, value: Any) -> Input:
    def prepare(folder: Path) -> None:
        (folder / "many").mkdir()
        (folder / "many" / "multirun.yaml").write_text(yaml.safe_dump(_with(saved, key, value), sort_keys=False))
        (folder / "stranger.py").write_text(MODULE.format(str(folder / "imported")))

    def act() -> int:
        execution.complete = Recorder()
        return _as_user(("resume", "many"))

    return Input(f"fedexp resume many  (a multirun.yaml with {what})", act, _untouched, prepare, 20)


def _with(saved: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    changed = json.loads(json.dumps(saved))  # without anchors
    *path, last = key.split(".")
    node = changed
    for name in path:
        node = node[name]
    node[last] = json.loads(json.dumps(value))
    return changed


def _saved() -> dict[str, Any]:
    """The `multirun.yaml` of a sweep whose points were not run."""

    def act() -> int:
        execution.complete = Recorder()
        return cli.main(["run", "-m", "experiment=smoke", "seed=0,1", "hydra.sweep.dir=many"])

    with tempfile.TemporaryDirectory() as place:
        code, said = outcome(Path(place), act, 60)
        if code:
            raise RuntimeError(f"the sweep to be changed ended with {code}: {said}")
        return yaml.safe_load((Path(place) / "many" / "multirun.yaml").read_text())
