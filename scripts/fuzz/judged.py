"""One input of the fuzz, what a command may answer to it, and whether it does."""

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from omegaconf import OmegaConf

from fedexp import cli
from fedexp.config.hydra_errors import COMPOSE_ERRORS
from fedexp.core.nested import walk
from fedexp.core.part import build
from fedexp.files.run_tables import has_rounds
from fedexp.parts.tracker.contract import SendingTracker, Tracker
from fedexp.process import logs
from fedexp.process.exits import exit_on_error
from fedexp.run import folders
from fedexp.run.run import run
from fedexp.simulation.setup import compatibility
from scripts.forked import outcome
from tests import composing

LIMIT_S = 60.0
CODES = (0, 1, 2)
WARNING = re.compile(r"(\[W\d+ .*\] Warning: |.*:\d+: \w*Warning: )")  # of PyTorch's C++, and of Python
IGNORED = "Exception ignored in: <function Net."  # what Python says where a user's __del__ raises
OURS = ("fedexp: ", "Traceback (most")


def nothing(_: Path) -> str:
    """No further demand."""
    return ""


@dataclass(frozen=True)
class Input:
    """What is done in an empty folder by a copy of this process; `name` says it in words that do it again."""

    name: str
    act: Callable[[], int]
    demand: Callable[[Path], str] = nothing  # what is wrong with the folder afterwards
    prepare: Callable[[Path], object] = lambda _: None
    limit_s: float = LIMIT_S
    tells: bool = False  # how far it is, on stderr
    warns: bool = False  # holds code of the user's, whose warnings are the user's to read
    codes: tuple[int, ...] = CODES  # with which it may end


def shortcoming(given: Input) -> str:
    """What came of it that must not; empty where it did well.

    It ends in time with 0, 1 or 2 and says one line on stderr unless it ends well; asked wrongly, it leaves no folder
    in which nothing happened.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        given.prepare(folder)
        there = (folder / "run").exists()
        code, said = outcome(folder, partial(apart, given.act), given.limit_s)
        mine = without_warnings(said) if given.warns else said
        complaints = [line for line in mine if not given.tells or line.startswith("fedexp: ")]
        if code is None:
            return f"still at it after {given.limit_s:g} s"
        if code not in given.codes or len(complaints) != (code != 0) or any("Traceback (most" in line for line in mine):
            return f"exit code {code} with {len(said)} lines on stderr: {' / '.join(said)[-1500:]}"
        if code == cli.USAGE_ERROR and not there and (folder / "run").exists() and not has_rounds(folder / "run"):
            return f"refused, but left a folder: {' '.join(said)}"
        return given.demand(folder)


def without_warnings(said: list[str]) -> list[str]:
    """The lines on stderr without the warnings of Python, which are the user's to read, and what belongs to them."""
    kept, warned, before = [], False, ""
    for line in said:
        ignored = before.startswith(IGNORED)
        warned = (
            line.startswith(IGNORED) or bool(WARNING.match(line)) or (warned and (ignored or not line.startswith(OURS)))
        )
        before = line
        kept += [] if warned else [line]
    return kept


def apart(act: Callable[[], int]) -> int:
    """Away from the user's data and cache, and from trackers: they start processes of their own."""
    os.environ.update(FEDEXP_DATA="no data", FEDEXP_CACHE="cache", FEDEXP_DEBUG="", HYDRA_FULL_ERROR="")
    SendingTracker.follow = Tracker.follow
    return act()


def typed(*words: str) -> Input:
    """`fedexp WORDS`."""
    return Input(f"fedexp {' '.join(words)}", lambda: cli.main(words), tells=words[:1] == ("plan",))


def run_of(*words: str) -> Input:
    """`fedexp run WORDS`, less what Hydra does, which would take ten times as long as the rest."""
    return Input(f"fedexp run {' '.join(words)} hydra.run.dir=run", lambda: as_command(lambda: _run(words)))


def as_command(act: Callable[[], int]) -> int:
    """Something done as if the command line had asked for it."""
    cli._dispatch = lambda _: act()
    return cli.main(["run"])


_DISPATCH = cli._dispatch


def _run(words: tuple[str, ...]) -> int:
    try:
        config = composing.config(*words)
    except COMPOSE_ERRORS:
        config = {"it": "???"}
    if any(value == "???" for _, value in walk(config)):  # the command knows how to say it
        return _DISPATCH(["run", *words, "hydra.run.dir=run"])
    compatibility.refuse(build(config))
    return begun(config)


def begun(config: dict) -> int:
    """The run of a config, in the folder `run`."""
    with (
        folders.provisional_folder(OmegaConf.create({"dir": "run"})) as folder,
        logs.restore_logging(),
        exit_on_error(folder),
    ):
        logs.log_to(folder)
        run(config, folder)
    return 0
