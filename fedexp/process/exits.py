"""How a command ends when it cannot go on: one readable line on stderr, and an exit code."""

import errno
import logging
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from fedexp.core.errors import MAX_MESSAGE, ConfigError, RunError, first_line, full_error
from fedexp.core.signals import exit_code
from fedexp.files.atomic import shell_path
from fedexp.files.open_folders import FolderGoneError
from fedexp.files.url_credentials import without_password
from fedexp.process.terminal import escape_controls
from fedexp.process.torchrun import rank
from fedexp.process.user_code_errors import explain_in_one_line

USAGE_ERROR, FAILURE = 2, 1
MOST_BYTES = 255  # of one name, for every file system in use
_LONG_WORD, _SHOWN = re.compile(rf"[^\s/]{{{MAX_MESSAGE + 1},}}"), 80
_CLOSING = "'\";:,.)]"  # signs behind a word


class CommandExit(BaseException):
    """Ends the command at once. Not an Exception: Hydra's launcher would catch that and go on with the next point."""

    def __init__(self, code: int, message: str, unexpected: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.unexpected = code, without_password(message), unexpected

    def __reduce__(self) -> tuple[type["CommandExit"], tuple[int, str, bool]]:
        return CommandExit, (self.code, self.message, self.unexpected)  # it comes pickled from a point's process

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal ended the command, such as Ctrl-C."""
        return self.code > 128

    def report(self) -> int:
        """Says why on stderr and returns the exit code; a traceback only where the cause is a defect."""
        if self.__cause__ is not None and (self.unexpected or full_error()):
            traceback.print_exception(self.__cause__)
        print_error(self.message)
        return self.code


@contextmanager
def exit_on_error(folder: Path | None, point: str = "") -> Iterator[None]:
    """Turns whatever ends a run into a CommandExit; `point` names the point of a sweep."""
    try:
        yield
    except (ConfigError, RunError) as error:
        code = USAGE_ERROR if isinstance(error, ConfigError) else FAILURE
        raise _log_reason(CommandExit(code, f"{point}{error}"), error) from error
    except KeyboardInterrupt as interrupt:
        interruption = f"{point}{_interruption_message(folder)}"
        raise _log_reason(CommandExit(exit_code(interrupt), interruption), interrupt) from interrupt
    except OSError as error:
        too_long = name_too_long(error)
        stop = CommandExit(
            USAGE_ERROR if too_long else FAILURE, f"{point}{too_long or _describe_refusal(folder, error)}"
        )
        raise _log_reason(stop, error) from error
    except CommandExit:
        raise
    except BaseException as error:  # sys.exit in a part would look like success
        explanation = explain_in_one_line(error)
        message = f"{point}{explanation or f'{type(error).__name__}: {first_line(error)}'}"
        raise _log_reason(CommandExit(FAILURE, message, unexpected=explanation is None), error) from error


@contextmanager
def interruptible(cure: str) -> Iterator[None]:
    """On an interrupt or a lost folder, ends a command over several runs with `cure`: how to continue it."""
    try:
        yield
    except FolderGoneError as error:
        raise CommandExit(FAILURE, f"{error}; put it back; {cure}") from error
    except (KeyboardInterrupt, CommandExit) as error:
        if isinstance(error, CommandExit) and not error.is_interrupted:
            raise
        code = error.code if isinstance(error, CommandExit) else exit_code(error)
        raise CommandExit(code, f"interrupted; {cure}") from error


def resumable(folder: Path) -> AbstractContextManager[None]:
    """On an interrupt, says how to resume the whole sweep or search, not only the run that was cut off."""
    return interruptible(f"continue with: fedexp resume {shell_path(folder)}")


def print_error(message: str) -> None:
    """Writes one line on stderr; under torchrun it says which process speaks."""
    speaker = f"fedexp (rank {rank()})" if rank() else "fedexp"
    with suppress(OSError, ValueError):  # the terminal may be closed, or what writes to it
        sys.stderr.write(f"{speaker}: {escape_controls(shorten_words(' '.join(without_password(message).split())))}\n")
        sys.stderr.flush()


def shorten_words(message: str) -> str:
    """A message whose very long words are cut; a path stays whole, since no name in it can be as long."""

    def shorten(match: re.Match[str]) -> str:
        word = match[0].rstrip(_CLOSING)
        closing = match[0][len(word) :][:2]
        return f"{word[:_SHOWN]}... ({len(word):,} characters){closing}"

    return _LONG_WORD.sub(shorten, message)


def name_too_long(error: OSError) -> str:
    """The message about a name or path that the system refused as too long; empty for other errors."""
    if error.errno != errno.ENAMETOOLONG:
        return ""
    path = str(error.filename)
    longest = max(Path(path).parts, key=lambda name: len(name.encode()))
    if (size := len(longest.encode())) > MOST_BYTES:
        return f"a name of a file or folder must have at most {MOST_BYTES} bytes, but {longest[:40]}... has {size}"
    return f"the path of a file or folder must be shorter, but {path[:40]}... has {len(path.encode()):,} bytes"


def describe_os_error(error: OSError) -> str:
    """What the system refused, and where."""
    return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")


def _describe_refusal(folder: Path | None, error: OSError) -> str:
    """The message about what the system refused, such as a write to a full disk, and how to continue."""
    if isinstance(error, FolderGoneError):
        return f"{error}; " + (
            f"put it back and continue with: fedexp resume {shell_path(folder)}" if folder else "start again"
        )
    reason = describe_os_error(error)
    if folder is None or not _has_saved_state(folder):
        return f"{reason}; start again once that is fixed"
    return f"{reason}; the last saved state is whole, continue with: fedexp resume {shell_path(folder)}"


def _has_saved_state(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("state.pt", "state.previous.pt"))


def _interruption_message(folder: Path | None) -> str:
    if folder is None:
        return "interrupted"
    if _has_saved_state(folder):
        return f"interrupted; continue with: fedexp resume {shell_path(folder)}"
    return "interrupted before the first state was saved; start again"


def _log_reason(stop: CommandExit, error: BaseException) -> CommandExit:
    """Writes the reason into the run's log file and returns the exit; the console gets it from `report`."""
    trace = (type(error), error, error.__traceback__) if stop.unexpected else None
    record = logging.LogRecord("fedexp", logging.ERROR, __file__, 0, stop.message, None, trace)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler):
            handler.handle(record)
    return stop
