"""The command line as processes of its own: forked where its imports are done already, which saves seconds each.

They are forked from a copy of the test process that was made before its first test, in which fedexp has run nothing.
"""

import atexit
import faulthandler
import io
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing import util
from pathlib import Path
from typing import NoReturn

from composing import config

from fedexp import cli
from fedexp.config import roles

IMPORTED = (
    *("fedexp.cli", "fedexp.commands.launch", "fedexp.run.run", "fedexp.sweep.command", "fedexp.search.search"),
    *("pandas", "sklearn.cluster", "torch.distributed", "torch.func", "hydra._internal.core_plugins.basic_launcher"),
)
USUAL = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)  # as Python does by itself
STOCK: list[socket.socket] = []  # the end of a line to the process that is forked from


class Command:
    """`fedexp ...` in a folder and a process group of its own.

    What it says is in `said`, the folder's `said.txt` unless `out` and `err` are named.
    """

    def __init__(
        self,
        folder: Path,
        *words: str,
        environment: Mapping[str, str] | None = None,
        out: Path | None = None,
        err: Path | None = None,
    ) -> None:
        self.said = out or folder / "said.txt"
        places = [str(self.said), str(err or self.said)]
        env = dict(os.environ if environment is None else environment)
        self.answers, given = os.pipe()
        request = json.dumps([str(folder), words, env, places]).encode() + b"\n"
        line = STOCK[0] if STOCK else begin()
        socket.send_fds(line, [request[:1]], [given])
        line.sendall(request[1:])
        os.close(given)
        self.pid = int(self._answer(60))
        self.code: int | None = None

    def over(self) -> bool:
        if self.code is None and (told := self._answer(0)):
            self.code = int(told)
        return self.code is not None

    def kill(self) -> int:
        """Kills the whole group; returns how the process ended: -9 unless that was before."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self, patience_s: float = 120) -> int:
        if self.code is None and (told := self._answer(patience_s)):
            self.code = int(told)
        assert self.code is not None, "it has not ended"
        return self.code

    def finish(self) -> None:
        assert self.wait() == 0, self.said.read_text()

    def _answer(self, patience_s: float) -> bytes:
        """The next number that its keeper tells: the pid, then the exit code."""
        if not select.select([self.answers], [], [], patience_s)[0]:
            return b""
        told = b""
        while not told.endswith(b"\n"):
            more = os.read(self.answers, 1)
            assert more, "its keeper is gone"
            told += more
        return told

    def __del__(self) -> None:
        os.close(self.answers)


def typed(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`fedexp WORDS`, its exit code and what it said."""
    with tempfile.TemporaryDirectory() as place:
        out, err = Path(place) / "out", Path(place) / "err"
        code = Command(folder, *words, environment={**os.environ, **environment}, out=out, err=err).wait()
        return subprocess.CompletedProcess(list(words), code, out.read_text(), err.read_text())


def begin() -> socket.socket:
    """Makes the copy of this process that the others are forked from."""
    for name in IMPORTED:
        import_module(name)
    config()  # Hydra looks for its plugins once a process
    ours, theirs = socket.socketpair()
    if not fork():
        keep_only(theirs.fileno())
        forget()
        ended(lambda: serve(theirs))
    theirs.close()
    STOCK.append(ours)
    return ours


def serve(line: socket.socket) -> int:
    """Forks a keeper for each request, which forks the command, tells its pid and in the end its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for keepers
    while True:
        request, handles, _, _ = socket.recv_fds(line, 1, 1)
        if not request:
            return 0
        while not request.endswith(b"\n"):
            request += line.recv(1 << 16)
        if not fork():
            line.close()
            ended(partial(keeper, request, handles[0]))
        os.close(handles[0])


def keeper(request: bytes, told: int) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = fork()
    if not pid:
        os.close(told)
        folder, words, environment, places = json.loads(request)
        ended(lambda: obey(folder, words, environment, places))
    os.write(told, b"%d\n" % pid)
    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return 0


def obey(folder: str, words: list[str], environment: dict[str, str], places: list[str]) -> int:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores Ctrl-C
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    look_in(environment.get("PYTHONPATH", ""))
    for stream, place in zip((1, 2), places, strict=True):
        os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666), stream)
    sys.stdout, sys.stderr = _text(1, "strict"), _text(2, "backslashreplace")
    try:
        return cli.main(words)
    finally:  # pools still open end here, as in any Python
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        atexit._run_exitfuncs()
        sys.stdout.flush()


def look_in(places: str) -> None:
    """Finds modules and installed packages where the environment says, as a new Python does."""
    sys.path[:0] = [place for place in places.split(os.pathsep) if place and place not in sys.path]
    for known in (roles.installed_roles, roles.option_folders):
        known.cache_clear()


def keep_only(handle: int) -> None:
    """Closes what else the test process has open: the lines to other test processes among it."""
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    for each in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        if each > 2 and each != handle:
            with suppress(OSError):  # the list itself was one
                os.close(each)


def forget() -> None:
    """Puts back what tests are surrounded by: their log, their warnings, what they do in the end."""
    faulthandler.disable()
    logging.root.handlers.clear()
    warnings.resetwarnings()
    for kind in USUAL:
        warnings.simplefilter("ignore", kind)
    atexit._clear()
    atexit.register(util._exit_function)  # pyright: ignore[reportAttributeAccessIssue]


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads; none is ours
        return os.fork()


def ended(act: Callable[[], int]) -> NoReturn:
    """Does it, and ends this process as Python would."""
    code = 1
    try:
        code = act()
    except SystemExit as asked:
        code = asked.code if isinstance(asked.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _text(stream: int, errors: str) -> io.TextIOWrapper:
    return open(stream, "w", encoding="utf-8", errors=errors, buffering=1, closefd=False)
