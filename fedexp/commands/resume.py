"""Continue a run, or do what a sweep, a search or a contest lacks.

DIR is a run folder, or the folder of a sweep (fedexp run -m): then its missing, unfinished and failed points are run
and nothing else, where hydra/launcher says (default: where they began). Or it is the folder of a search, which several
processes may work on at once, or of a contest. tracker=mlflow sends there what has not arrived, also of runs and sweeps
that are finished.

A folder runs nothing of its own: parts from modules that were never run on this machine are refused.
"""

from argparse import Namespace
from pathlib import Path

from fedexp.commands.arguments import candidates
from fedexp.commands.arguments.fail_if import add_fail_if_flag, read_bounds, report_failed
from fedexp.commands.arguments.json_document import add_json_flag, add_quiet_flag, json_document, silence_stdout
from fedexp.commands.arguments.parsing import Parser, integer_at_least
from fedexp.commands.arguments.trust_flag import add_trust_flag, trust_of
from fedexp.commands.run import conclude, describe_failed_points
from fedexp.core.errors import ConfigError
from fedexp.files.untrusted import refuse_special_files
from fedexp.process.torchrun import rank
from fedexp.run import folders

CHANGEABLE = ("tracker", "hydra/launcher")  # what may be chosen again


def build_parser() -> Parser:
    """Declares the folder, then what is chosen again."""
    parser = Parser("resume DIR [tracker=...] [hydra/launcher=...]", __doc__)
    parser.words("words", _completions)
    parser.add_flag("processes at once, for a search or a contest (1)", "--jobs", type=integer_at_least(1), metavar="N")
    add_fail_if_flag(parser)
    add_quiet_flag(parser)
    add_json_flag(parser)
    add_trust_flag(parser)
    parser.add_config_dir("where the options lie that a sweep, search or contest was begun with")
    return parser


def act(words: list[str]) -> int:
    """Continues a run, a sweep, a search or a contest; returns 1 where a condition of --fail-if holds."""
    arguments = build_parser().read(words)
    if not arguments.words:
        raise ConfigError(
            "resume needs the folder of a run, a sweep, a search or a contest, e.g. fedexp resume outputs/latest"
        )
    bounds, folder = read_bounds(arguments), Path(arguments.words[0])
    with json_document(arguments.json and not rank()) as content, silence_stdout(arguments.quiet):
        with describe_failed_points(arguments, content, bounds):
            code = _continue(folder, arguments.words[1:], arguments)
        failed = [] if rank() else conclude(arguments, content, bounds, folder)
    return code or report_failed(failed)


def _continue(folder: Path, other_words: list[str], arguments: Namespace) -> int:
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; go to where the run was started, or give its path")
    folders.refuse_folder_of_runs(folder, "fedexp resume")
    folders.refuse_export(folder)
    refuse_special_files(folder, writing=True)
    flag = "--fail-if" if arguments.fail_if else "--json" if arguments.json else None
    if flag and (folders.is_search(folder) or folders.is_contest(folder)):
        raise ConfigError(f"{flag} is for runs and sweeps, and {folder} is a search or a contest; leave it out")
    if folders.is_search(folder):
        from fedexp.commands import search

        return search.resume(folder, other_words, arguments.jobs or 1, trust_of(arguments))
    if folders.is_contest(folder):
        from fedexp.commands import contest

        return contest.resume(folder, other_words, arguments.jobs or 1, trust_of(arguments))
    if arguments.jobs is not None:
        raise ConfigError(
            f"--jobs is for a search or a contest, which {folder} is not; a sweep takes hydra/launcher=joblib"
        )
    from fedexp.commands.launch import resume

    return resume(folder, other_words, trust_of(arguments))


def _completions(arguments: Namespace, word: str) -> list[str]:
    if not arguments.words:
        return candidates.complete_run_folder(word)
    arguments.overrides = arguments.words[1:]
    return [
        completion for completion in candidates.complete_override(arguments, word) if completion.startswith(CHANGEABLE)
    ]
