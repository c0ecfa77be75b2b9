"""`--fail-if` of `fedexp run` and `fedexp resume`: bounds on summary.json for which the command ends with code 1."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedexp.commands.arguments.parsing import Parser
from fedexp.files import summary_bounds, summary_json
from fedexp.files.summary_bounds import Bound
from fedexp.process.exits import FAILURE, print_error
from fedexp.run import folders

FAIL_IF = 'exit with code 1 if this holds for a run in the end, e.g. "final_accuracy < 0.8"; may be repeated'


def add_fail_if_flag(parser: Parser) -> None:
    """Adds --fail-if to a command."""
    parser.add_flag(FAIL_IF, "--fail-if", action="append", default=[], metavar="TEXT")


def read_bounds(arguments: Namespace) -> list[Bound]:
    """The bounds that were given; raises ConfigError where a text is none."""
    return [summary_bounds.parse(text) for text in arguments.fail_if]


def failed_bounds(bounds: Sequence[Bound], folder: Path) -> list[str]:
    """A line for every bound that holds for the run in `folder`, or for a point of the sweep there."""
    return summary_bounds.failures(bounds, _summaries(folder)) if bounds else []


def report_failed(failed: Sequence[str]) -> int:
    """Prints these lines as errors; returns the exit code, 1 if there are any, else 0."""
    for line in failed:
        print_error(line)
    return FAILURE if failed else 0


def _summaries(folder: Path) -> dict[Path, dict[str, Any]]:
    """The summaries of a run, or of every point of a sweep, by folder."""
    run_folders = [folder]
    if folders.is_sweep(folder):
        from fedexp.sweep.frame import points

        run_folders = [Path(point["folder"]) for point in points(folder)]
    return {run_folder: summary_json.read(run_folder) or {} for run_folder in run_folders}
