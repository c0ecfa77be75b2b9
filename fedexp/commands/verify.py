"""Check what the folder of a run says, and compute rounds again.

First the folder against itself: the tables are whole and agree, every round has its digest, every saved state is that
of its round, its models score what metrics.csv says, summary.json, federation.csv and client_scores.csv come out
again, the words and options beside the config are its own. Then rounds are recomputed: as many as fit into a minute,
round 1, the last one, and others that chance draws, first those that follow a saved state (keep_states=N keeps one
every N rounds). All rounds in between are compared too: models, memories, and lines of the tables, bit by bit where
engine, device and versions are those of the run, else within rounding. The last line names what was checked and what
was not. Of a sweep every point is checked in turn, and sweep.csv is computed again from them.
Nothing in DIR is changed, and nothing of it runs.

Exit code 0: all as written, bit by bit. 3: all as written, but only within rounding. 1: something differs, is missing
or damaged.

Given the results.csv of a table that `fedexp replay` knows, K random lines of it are run again. --table names a table
of your own, whose cells are then run: a table is code.
"""

import secrets
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from fedexp.commands.arguments import candidates
from fedexp.commands.arguments.json_document import add_json_flag, json_document
from fedexp.commands.arguments.parsing import Parser, integer_at_least, nonempty_text
from fedexp.commands.arguments.trust_flag import add_trust_flag, trust_of
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.untrusted import refuse_special_files
from fedexp.process import logs
from fedexp.process.exits import FAILURE, CommandExit
from fedexp.process.terminal import print_text
from fedexp.process.torchrun import under_torchrun
from fedexp.run import folders


def build_parser() -> Parser:
    """Declares a run folder, a sweep or a results.csv."""
    parser = Parser("verify DIR|results.csv [--rounds K] [--seed S] [--all]", __doc__)
    parser.words("places", lambda _, word: candidates.complete_run_folder(word))
    help_text = "how many rounds are recomputed (those of a minute), or lines (3)"
    parser.add_flag(help_text, "--rounds", type=integer_at_least(1), metavar="K")
    parser.add_flag("draws them, as it did before (chance)", "--seed", type=integer_at_least(0), metavar="S")
    parser.add_flag("recompute all rounds", "--all", action="store_true")
    parser.add_flag(
        "the table of a results.csv, where it is your own", "--table", type=nonempty_text, metavar="FILE.yml"
    )
    add_json_flag(parser)
    add_trust_flag(parser)
    return parser


def act(words: list[str]) -> int:
    """Computes rounds of a run folder again; ends with exit code 1 where something is not as it was written."""
    arguments = build_parser().read(words)
    if len(arguments.places) != 1:
        raise ConfigError(
            f"verify needs one run folder, got {len(arguments.places)}; e.g. fedexp verify outputs/latest"
        )
    if arguments.all and arguments.rounds:
        raise ConfigError(f"verify takes --all or --rounds, got --all and --rounds {arguments.rounds}; leave one out")
    target, seed = Path(arguments.places[0]), secrets.randbelow(10**9) if arguments.seed is None else arguments.seed
    folder = None if target.exists() and not target.is_dir() else _folder(target)
    if folder is not None and arguments.table is not None:
        raise ConfigError(f"--table goes with a results.csv, got the folder {display_path(target)}; leave it out")
    if folder is not None:
        folders.refuse_folder_of_runs(folder, "fedexp verify")
        refuse_special_files(folder)
    if under_torchrun():
        raise ConfigError("verify starts its workers itself; run it without torchrun")
    lines: list[str] = []

    def say(text: str) -> None:
        text = " ".join(text.splitlines())  # a folder may name anything
        lines.append(text)
        _say(text)

    with json_document(arguments.json) as content:
        complaints, exact = _check(arguments, folder, target, seed, say)
        if arguments.json:
            content |= {"target": display_path(target), "seed": seed, "checks": lines}
            content |= {"complaints": complaints, "exact": exact and not complaints}
    return _conclude(complaints, exact, target)


def _conclude(complaints: list[str], exact: bool, target: Path) -> int:
    if complaints:
        suffix = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
        raise CommandExit(FAILURE, f"{complaints[0]}{suffix}")
    if not exact:
        raise CommandExit(
            WITHIN_ROUNDING, f"{display_path(target)} is as it was written within rounding, not bit by bit"
        )
    return 0


def _check(
    arguments: Namespace, folder: Path | None, target: Path, seed: int, say: Callable[[str], None]
) -> tuple[list[str], bool]:
    """The complaints about a run folder or, without one, a results.csv, and whether bits were compared."""
    with logs.restore_logging():
        logs.silence()
        from fedexp.replay import recheck
        from fedexp.verify.sweep import verify_sweep
        from fedexp.verify.verify import RecomputeBudget, verify

        if folder is None:
            count = None if arguments.all else arguments.rounds or 3
            return recheck.verify(target, count, seed, say, arguments.table)
        budget = RecomputeBudget(seed, arguments.rounds, arguments.all)
        check = verify_sweep if folders.is_sweep(folder) else verify
        result = check(folder, budget, say, trust_of(arguments))
        return result.complaints, result.exact


WITHIN_ROUNDING = 3  # the exit code where nothing differs, but bits could not be compared


def _say(text: str) -> None:
    print_text(f"{text}\n")


def _folder(folder: Path) -> Path:
    if folder.suffix == ".csv" and not folder.exists():
        raise ConfigError(
            f"there is no file {folder}; fedexp verify needs the results.csv of a replay, or a run folder"
        )
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; fedexp verify needs a run folder, e.g. outputs/latest")
    return folder
