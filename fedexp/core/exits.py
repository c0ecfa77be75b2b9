"""How a command ends when it cannot go on: one readable line on stderr, and an exit code."""

import errno
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from fedexp.core.blame import one_line
from fedexp.core.errors import ConfigError, RunError, first_line
from fedexp.core.files import typed
from fedexp.core.open_folders import FolderGoneError
from fedexp.core.passwords import without_password
from fedexp.core.signals import exit_code
from fedexp.core.terminal import harmless
from fedexp.core.torchrun import rank

ASKED_WRONGLY, FAILED = 2, 1
MOST_BYTES = 255  # of one name, for every file system in use


class Stopped(BaseException):
    """Ends the command at once. Not an Exception: Hydra's launcher would catch that and go on with the next point."""

    def __init__(self, code: int, message: str, unexpected: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.unexpected = code, without_password(message), unexpected

    def __reduce__(self) -> tuple[type["Stopped"], tuple[int, str, bool]]:
        return Stopped, (self.code, self.message, self.unexpected)  # it comes pickled from a point's process

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the command, such as Ctrl-C."""
        return self.code > 128

    def report(self) -> int:
        """Says why on stderr and returns the exit code; a traceback only where the cause is a defect."""
        if self.__cause__ is not None and (self.unexpected or full_error()):
            traceback.print_exception(self.__cause__)
        complain(self.message)
        return self.code


@contextmanager
def ending(folder: Path | None, point: str = "") -> Iterator[None]:
    """Turns whatever ends a run into a CommandExit; `point` names the point of a sweep."""
    try:
        yield
    except (ConfigError, RunError) as error:
        code = ASKED_WRONGLY if isinstance(error, ConfigError) else FAILED
        raise _logged(Stopped(code, f"{point}{error}"), error) from error
    except KeyboardInterrupt as interrupt:
        told = f"{point}{_interrupted(folder)}"
        raise _logged(Stopped(exit_code(interrupt), told), interrupt) from interrupt
    except OSError as error:
        too_long = name_too_long(error)
        stop = Stopped(ASKED_WRONGLY if too_long else FAILED, f"{point}{too_long or _no_room(folder, error)}")
        raise _logged(stop, error) from error
    except Stopped:
        raise
    except BaseException as error:  # sys.exit in a part would look like success
        known = one_line(error)
        what = f"{point}{known or f'{type(error).__name__}: {first_line(error)}'}"
        raise _logged(Stopped(FAILED, what, unexpected=known is None), error) from error


@contextmanager
def interruptible(cure: str) -> Iterator[None]:
    """On an interrupt or a lost folder, ends a command over several runs with `cure`: how to continue it."""
    try:
        yield
    except FolderGoneError as error:
        raise Stopped(FAILED, f"{error}; put it back; {cure}") from error
    except (KeyboardInterrupt, Stopped) as error:
        if isinstance(error, Stopped) and not error.interrupted:
            raise
        code = error.code if isinstance(error, Stopped) else exit_code(error)
        raise Stopped(code, f"interrupted; {cure}") from error


def resumable(folder: Path) -> AbstractContextManager[None]:
    """On an interrupt, says how to resume the whole sweep or search, not only the run that was cut off."""
    return interruptible(f"continue with: fedexp resume {typed(folder)}")


def complain(message: str) -> None:
    """Writes one line on stderr; under torchrun it says which process speaks."""
    speaker = f"fedexp (rank {rank()})" if rank() else "fedexp"
    with suppress(OSError, ValueError):  # the terminal may be closed, or what writes to it
        sys.stderr.write(f"{speaker}: {harmless(' '.join(without_password(message).split()))}\n")
        sys.stderr.flush()


def name_too_long(error: OSError) -> str:
    """The message about a name or path that the system refused as too long; empty for other errors."""
    if error.errno != errno.ENAMETOOLONG:
        return ""
    path = str(error.filename)
    longest = max(Path(path).parts, key=lambda name: len(name.encode()))
    if (size := len(longest.encode())) > MOST_BYTES:
        return f"a name of a file or folder must have at most {MOST_BYTES} bytes, but {longest[:40]}... has {size}"
    return f"the path of a file or folder must be shorter, but {path[:40]}... has {len(path.encode()):,} bytes"


def full_error() -> bool:
    """Whether the user asked for tracebacks."""
    return "1" in (os.environ.get("FEDEXP_DEBUG"), os.environ.get("HYDRA_FULL_ERROR"))


def _no_room(folder: Path | None, error: OSError) -> str:
    """The message about what the system refused, such as a write to a full disk, and how to continue."""
    if isinstance(error, FolderGoneError):
        return f"{error}; " + (
            f"put it back and continue with: fedexp resume {typed(folder)}" if folder else "start again"
        )
    what = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    if folder is None or not _saved(folder):
        return f"{what}; start again once that is fixed"
    return f"{what}; the last saved state is whole, continue with: fedexp resume {typed(folder)}"


def _saved(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("state.pt", "state.previous.pt"))


def _interrupted(folder: Path | None) -> str:
    if folder is None:
        return "interrupted"
    if _saved(folder):
        return f"interrupted; continue with: fedexp resume {typed(folder)}"
    return "interrupted before the first state was saved; start again"


def _logged(stop: Stopped, error: BaseException) -> Stopped:
    """Writes the reason into the run's log file and returns the exit; the console gets it from `report`."""
    trace = (type(error), error, error.__traceback__) if stop.unexpected else None
    record = logging.LogRecord("fedexp", logging.ERROR, __file__, 0, stop.message, None, trace)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler):
            handler.handle(record)
    return stop
