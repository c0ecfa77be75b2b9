"""Run an experiment; with -m every combination of values."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedexp.commands.arguments import candidates
from fedexp.commands.arguments.fail_if import add_fail_if_flag, failed_bounds, read_bounds, report_failed
from fedexp.commands.arguments.json_document import add_json_flag, add_quiet_flag, json_document, silence_stdout
from fedexp.commands.arguments.parsing import Parser
from fedexp.commands.list import run_help
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError
from fedexp.files import summary_json
from fedexp.files.summary_bounds import Bound
from fedexp.run import folders

TOPICS = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def build_parser() -> Parser:
    """Declares Hydra's own flags, less those for the authors of apps."""
    parser = Parser("run [group=option ...] [key=value ...] [-m] [--cfg job]", __doc__, lambda: run_help(conf_dir()))
    add_run_options(parser)
    parser.add_flag("show the composed config instead of running it", "-c", "--cfg", values=("job", "hydra", "all"))
    parser.add_flag("with --cfg: show values instead of ${interpolations}", "--resolve", action="store_true")
    parser.add_flag("with --cfg: show only what lies under this key", "-p", "--package", metavar="KEY")
    help_text = f"show how Hydra composes: {', '.join(TOPICS)}"
    add_fail_if_flag(parser)
    add_quiet_flag(parser)
    add_json_flag(parser)
    parser.add_flag(help_text, "-i", "--info", values=TOPICS, nargs="?", const="all", metavar="[TOPIC]")
    return parser


def add_run_options(parser: Parser) -> None:
    """Declares the words that compose a run, and the flags that say how."""
    parser.words("overrides", candidates.complete_override)
    help_text = "every combination of comma-separated values: -m seed=0,1 model=mlp,keras_cnn"
    parser.add_flag(help_text, "-m", "--multirun", action="store_true")
    parser.add_config_dir("look for your own options and experiments in DIR too")
    parser.add_flag(
        "start from another root config than `config`", "-cn", "--config-name", default="config", metavar="NAME"
    )


def act(words: list[str]) -> int:
    """Runs an experiment, or shows its config; returns 1 where a condition of --fail-if holds."""
    arguments = read(words)
    bounds = read_bounds(arguments)
    from fedexp.commands.launch import launch

    with (
        json_document(arguments.json) as content,
        silence_stdout(arguments.quiet),
        describe_failed_points(arguments, content, bounds),
    ):
        folder = launch(arguments, bounds)
        failed = [] if folder is None else conclude(arguments, content, bounds, folder)
    return report_failed(failed)


@contextmanager
def describe_failed_points(arguments: Namespace, content: dict[str, Any], bounds: Sequence[Bound]) -> Iterator[None]:
    """Fills the document of a sweep of which points failed, and prints which bounds hold; the error goes on."""
    from fedexp.sweep.command import PointsFailed

    try:
        yield
    except PointsFailed as stop:
        report_failed(conclude(arguments, content, bounds, stop.folder))
        raise


def conclude(arguments: Namespace, content: dict[str, Any], bounds: Sequence[Bound], folder: Path) -> list[str]:
    """Fills the document of a run or a sweep, if asked to; returns the bounds that hold, a line each."""
    failed = failed_bounds(bounds, folder)
    if arguments.json:
        content |= {**_describe(folder), "failed": failed}
    return failed


def _describe(folder: Path) -> dict[str, Any]:
    """What --json says of a finished run or a sweep."""
    if folders.is_sweep(folder):
        from fedexp.sweep.frame import points

        return {"folder": folder.absolute(), "points": points(folder)}
    return {"folder": folder.absolute(), "summary": summary_json.read(folder)}


def read(words: Sequence[str]) -> Namespace:
    """Reads flags and overrides; refuses flags that contradict each other."""
    arguments = build_parser().read(words)
    if sum((arguments.multirun, arguments.cfg is not None, arguments.info is not None)) > 1:
        raise ConfigError("only one of --multirun, --cfg and --info can be given")
    shows = arguments.cfg is not None or arguments.info is not None
    run_flags = {"--json": arguments.json, "--quiet": arguments.quiet, "--fail-if": arguments.fail_if}
    if shows and (flag := next((name for name, value in run_flags.items() if value), None)):
        raise ConfigError(f"{flag} is for runs; leave it out with --cfg or --info")
    if arguments.cfg is None and (arguments.resolve or arguments.package):
        raise ConfigError(f"{'--resolve' if arguments.resolve else '--package'} needs --cfg; write --cfg job too")
    return arguments
