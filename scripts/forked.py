"""Copies of this process that do one thing and end: what hangs, dies or eats memory there harms nobody here."""

import io
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

QUIET = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)  # as Python does by itself
ROOM = 4 * 2**30  # bytes that a copy may take beyond what is here already


def warm_up(act: Callable[[], int]) -> None:
    """Imports what a copy has to that does this, so that the others need not."""

    def told() -> int:
        code = act()
        Path("modules.txt").write_text("\n".join(list(sys.modules)))
        return code

    with tempfile.TemporaryDirectory() as place:
        code, said = outcome(Path(place), told, 300)
        if code:
            raise RuntimeError(f"the first copy ended with {code}: {' / '.join(said)}")
        for name in (Path(place) / "modules.txt").read_text().splitlines():
            with suppress(Exception):  # some can be imported by others only
                import_module(name)


class Copy:
    """A fork that does something in a folder, where `said.txt` then holds what it wrote on stderr."""

    def __init__(self, folder: Path, act: Callable[[], int]) -> None:
        self.folder = folder
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads; none is ours
            self.pid = os.fork()
        if not self.pid:
            _live(folder, act)
        with suppress(OSError):  # it may have done so itself, and be gone
            os.setpgid(self.pid, self.pid)

    def wait(self, limit_s: float) -> int | None:
        """Its exit code, or -N where signal N ended it; None where it is still at it after so long."""
        deadline = time.monotonic() + limit_s
        while True:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                return None
            time.sleep(0.002)

    def kill(self) -> int:
        """Kills it and all that it has started; returns how it ended: -9 unless that was before."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self.wait(60)
        assert code is not None
        return code

    def end(self, limit_s: float) -> int | None:
        """The same; what is still at it after so long is killed."""
        code = self.wait(limit_s)
        if code is None:
            self.kill()
        return code

    def said(self) -> list[str]:
        """The lines that it wrote on stderr."""
        path = self.folder / "said.txt"
        return path.read_text(errors="replace").splitlines() if path.exists() else []


def outcome(folder: Path, act: Callable[[], int], limit_s: float) -> tuple[int | None, list[str]]:
    """How a copy ends that does something in a folder (None: not within the limit), and what it says."""
    copy = Copy(folder, act)
    return copy.end(limit_s), copy.said()


def put(holder: object, name: str, value: object) -> None:
    """Puts something else in the place of an attribute: in a copy, where nothing comes after it."""
    setattr(holder, name, value)


def _live(folder: Path, act: Callable[[], int]) -> NoReturn:
    code = 70
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        _speak_into(folder / "said.txt")
        warnings.resetwarnings()
        for kind in QUIET:
            warnings.simplefilter("ignore", kind)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
        code = act()
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)


def _speak_into(path: Path) -> None:
    """Stderr into a file and stdout nowhere, whatever stood in their place."""
    sys.stdout, sys.stderr = io.StringIO(), path.open("w", encoding="utf-8", errors="backslashreplace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(sys.stderr.fileno(), 2)
