"""The command line: the first word picks the command, the rest belongs to it (for `run`: to Hydra)."""

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from fedexp.commands.arguments.json_document import error_document, print_whole
from fedexp.commands.arguments.parsing import COMMANDS, parser_of
from fedexp.core.errors import ConfigError, RunError, did_you_mean, full_error
from fedexp.core.signals import exit_code, find_interrupt, raise_on_termination
from fedexp.process.exits import FAILURE, USAGE_ERROR, CommandExit, describe_os_error, name_too_long, print_error
from fedexp.process.torchrun import refuse_environment
from fedexp.process.version import __version__

HELP = """\
usage: fedexp COMMAND ...

{commands}

Begin with `fedexp run`, which needs no download, and `fedexp list`.
Every command answers --help; `fedexp --version` names the version.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 1 failed, 2 asked wrongly, 130 / 143 / 129 interrupted."""
    _set_environment()
    _open_streams()
    try:
        with raise_on_termination():
            return _dispatch(list(sys.argv[1:] if argv is None else argv))
    except CommandExit as stop:
        return stop.report()
    except KeyboardInterrupt as interrupt:
        print_error("interrupted")
        return exit_code(interrupt)
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except BaseException as error:
        if (behind := find_interrupt(error)) is not None:  # a library gave another error in its place
            print_error("interrupted")
            return exit_code(behind)
        return _report(error)


def _report(error: BaseException) -> int:
    """Reports an error in one line, if its cause is known; raises an error of the package's own again."""
    if not isinstance(error, (ConfigError, RunError, OSError)):  # OSError: a full disk, a folder that is not ours
        return _report_user_error(error)
    if full_error():
        traceback.print_exception(error)
    too_long = name_too_long(error) if isinstance(error, OSError) else ""
    message = describe_os_error(error) if isinstance(error, OSError) else str(error)
    print_error(too_long or message)
    return USAGE_ERROR if too_long or isinstance(error, ConfigError) else FAILURE


def _report_user_error(error: BaseException) -> int:
    """Reports an error in the user's own part in one line; raises an error of the package's own again."""
    from fedexp.process.user_code_errors import explain_in_one_line

    message = explain_in_one_line(error)
    if message is None:
        raise error
    if full_error():
        traceback.print_exception(error)
    print_error(message)
    return FAILURE


def _set_environment() -> None:
    """Sets one computing thread a process: several processes share the cores better than several threads do."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("MPLBACKEND", "Agg")
    logging.raiseExceptions = full_error()  # a log that finds no room is no news beside what ends the run


def _open_streams() -> None:
    """Opens closed standard streams onto /dev/null; else the next file, such as metrics.csv, would get their text."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is that of the stream
            setattr(sys, name, os.fdopen(nothing, mode, encoding="utf-8", closefd=False))


def _dispatch(words: list[str]) -> int:
    if not words:
        raise ConfigError(f"a command must be given: {', '.join(COMMANDS)}; see fedexp --help")
    first, *arguments = words
    if first in ("--help", "-h", "help"):
        return _say(_help())
    if first == "--version":
        return _say(f"fedexp {__version__}\n")
    if first == "__complete":
        from fedexp.commands.completion import complete

        return _say("".join(f"{word}\n" for word in complete(" ".join(arguments))))
    if first not in COMMANDS:
        hint = f"write fedexp run {first} ..." if "=" in first else did_you_mean(first, list(COMMANDS))
        raise ConfigError(f"unknown command {first}; {hint} (fedexp --help)")
    if "--help" in arguments or "-h" in arguments:
        return _say(parser_of(first).format_help())
    with error_document("--json" in arguments):
        refuse_environment()
        return import_module(f"fedexp.commands.{first}").act(arguments)


def _help() -> str:
    width = max(map(len, COMMANDS))
    rows = (f"  fedexp {word:{width}}  {parser_of(word).purpose.partition('.')[0]}" for word in COMMANDS)
    return HELP.format(commands="\n".join(rows))


def _say(text: str) -> int:
    print_whole(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
