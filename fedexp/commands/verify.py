"""Check what the folder of a run says, and compute rounds again.

First the folder against itself: the tables are whole and agree, every round has its digest, every saved state is that
of its round, its models score what metrics.csv says, summary.json and federation.csv come out again. Then K rounds are
replayed: round 1 and random ones, first those that follow a saved state (keep_states=N keeps one every N rounds), then
what is near one. All rounds in between are compared too: digests of the models and lines of metrics.csv and
clients.csv, bit by bit where engine, device and versions are those of the run, else within rounding. The last line
names what was checked and what was not. Exit code 0: all as written, 1: something differs, is missing or damaged.
Nothing in RUN_DIR is changed, and nothing of it runs.

Given the results.csv of a table that `fedexp replay` knows, K random lines of it are run again. --table names a table
of your own, whose cells are then run: a table is code.
"""

import sys
from pathlib import Path

from fedexp.commands import offered
from fedexp.commands.parsing import Parser, given, whole
from fedexp.commands.trusting import trust_of, vouch
from fedexp.core import logs
from fedexp.core.errors import ConfigError
from fedexp.core.exits import FAILED, Stopped
from fedexp.core.files import shown
from fedexp.core.own_files import refuse_strange
from fedexp.core.terminal import harmless
from fedexp.core.torchrun import under_torchrun
from fedexp.run import folders


def parser() -> Parser:
    """A run folder."""
    made = Parser("verify RUN_DIR|results.csv [--rounds K] [--seed S] [--all]", __doc__)
    made.words("places", lambda _, word: offered.begun(word))
    made.flag("how many rounds (or lines) are replayed (3)", "--rounds", type=whole(1), metavar="K")
    made.flag("draws them (0)", "--seed", type=whole(0), default=0, metavar="S")
    made.flag("replay all rounds", "--all", action="store_true")
    made.flag("the table of a results.csv, where it is your own", "--table", type=given, metavar="FILE.yml")
    vouch(made)
    return made


def act(words: list[str]) -> int:
    """Replays rounds of a run folder; ends with exit code 1 where something is not as it was written."""
    asked = parser().read(words)
    if len(asked.places) != 1:
        raise ConfigError(f"verify needs one run folder, got {len(asked.places)}; e.g. fedexp verify outputs/latest")
    if asked.all and asked.rounds:
        raise ConfigError(f"verify takes --all or --rounds, got --all and --rounds {asked.rounds}; leave one out")
    place, count = Path(asked.places[0]), None if asked.all else asked.rounds or 3
    folder = None if place.exists() and not place.is_dir() else _folder(place)
    if folder is not None and asked.table is not None:
        raise ConfigError(f"--table goes with a results.csv, got the folder {shown(place)}; leave it out")
    if under_torchrun():
        raise ConfigError("verify starts its workers itself; run it without torchrun")
    with logs.kept():
        logs.silence()
        from fedexp.replay import again
        from fedexp.verify import verify

        if folder is None:
            complaints = again.verify(place, count, asked.seed, _say, asked.table)
        else:
            complaints = verify.verify(folder, count, asked.seed, _say, trust_of(asked))
    if complaints:
        others = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
        raise Stopped(FAILED, f"{complaints[0]}{others}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{harmless(text)}\n")
    sys.stdout.flush()


def _folder(folder: Path) -> Path:
    if folder.suffix == ".csv" and not folder.exists():
        raise ConfigError(
            f"there is no file {folder}; fedexp verify needs the results.csv of a replay, or a run folder"
        )
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; fedexp verify needs a run folder, e.g. outputs/latest")
    if folders.is_sweep(folder):
        raise ConfigError(f"{shown(folder)} is a sweep; verify one of its points, e.g. {shown(folder / '0')}")
    refuse_strange(folder)
    return folder
