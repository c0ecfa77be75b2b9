"""Local workers: forks of this process that share its memory and end with it; their deaths are detected.

The run then ends in one line, and its last state is kept: `simulation/rounds.py`, `with_workers`.
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import torch
import torch.distributed as dist

from fedexp.core import signals
from fedexp.core.errors import ConfigError, first_line
from fedexp.process import logs
from fedexp.process.user_code_errors import explain_in_one_line
from fedexp.training.workers.arena import SharedArena
from fedexp.training.workers.heartbeat import PATIENCE, Heartbeat
from fedexp.training.workers.pool import LOOK_S, SharedWorkerPool, join

log = logging.getLogger(__name__)

ERROR_BYTES = 16_000  # of a worker's error: a pipe takes so many before it is read, which is when the worker has died
ARENA_MB = 256  # of results that go through shared memory at a time; what is larger is sent
FILES, FILES_EACH = 22, 3  # that a group of workers opens in the first process, and for every worker


class ForkedWorkers:
    """The forked processes of one run, as the first process manages them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.children: dict[int, int] = {}  # pid -> reading end of the pipe for its error
        self.exit_statuses: dict[int, int] = {}  # pid -> how it ended
        self.heartbeat = Heartbeat(size)
        self.arena = SharedArena(ARENA_MB) if size > 1 else None

    def start(self, worker_main: Callable[[SharedWorkerPool], None]) -> SharedWorkerPool | None:
        """Forks `size - 1` workers that run `worker_main`; returns the first process's pool, None without workers.

        Raises:
            ConfigError: the system does not allow so many open files; gloo would abort, or wait for ever.
        """
        if self.size == 1:
            return None
        refuse_few_files(self.size)
        listener = socket.create_server(("127.0.0.1", 0), backlog=self.size)
        port = listener.getsockname()[1]
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
        sys.stdout.flush()
        sys.stderr.flush()
        first = os.getpid()
        for rank in range(1, self.size):
            read, write = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads; we have none
                child = os.fork()
            if child == 0:
                listener.close()
                _run_worker(first, write, partial(self._work, rank, port, worker_main))
            os.close(write)
            self.children[child] = read
        store = dist.TCPStore(
            "127.0.0.1", port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach()
        )
        return self._join_group(store)

    def _work(self, rank: int, port: int, worker_main: Callable[[SharedWorkerPool], None]) -> None:
        """Runs in a worker: joins the group and runs `worker_main`."""
        self.heartbeat.begin(rank)
        store = dist.TCPStore("127.0.0.1", port, is_master=False)
        worker_main(join(rank, self.size, store, torch.device("cpu"), arena=self.arena))

    def _join_group(self, store: dist.Store) -> SharedWorkerPool:
        """Joins the process group in a thread, so that a worker's death is noticed while waiting."""
        outcome: list[SharedWorkerPool | BaseException] = []

        def enter_group() -> None:
            try:
                outcome.append(join(0, self.size, store, torch.device("cpu"), self.monitor, self.arena))
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=enter_group, daemon=True)
        thread.start()
        while thread.is_alive():
            self.monitor()
            thread.join(LOOK_S)
        [pool] = outcome
        if isinstance(pool, BaseException):
            raise pool
        return pool

    def monitor(self) -> None:
        """Checks the workers while the first process waits for them, and logs those without a heartbeat.

        Raises:
            RuntimeError: one has died; `describe_failure` says how.
        """
        if any(self._status(child) for child in self.children):  # 0: it ended well
            raise RuntimeError("a worker has died")
        for rank in self.heartbeat.silent_workers():
            log.warning(
                "worker %d (process %d) has not answered for %d s; still waiting for it. If it stays silent, end this "
                "run and continue with fedexp resume",
                rank,
                list(self.children)[rank - 1],
                round(PATIENCE * LOOK_S),
            )

    def stop(self) -> None:
        """Kills every worker that is still running."""
        for child, read in self.children.items():
            try:
                if self._status(child) is None:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
            os.close(read)
        self.children.clear()

    def describe_failure(self, patience_s: float = 5.0) -> str | None:
        """Returns the error of the first worker that died, waiting up to `patience_s`; None if all are alive."""
        if not self.children:
            return None
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            failures = [
                (status, rank, read)
                for rank, (child, read) in enumerate(self.children.items(), start=1)
                if (status := self._status(child)) is not None
            ]
            if failures:  # one that was killed comes first: it causes errors in the others
                return _exit_message(*min(failures, key=lambda end: not os.WIFSIGNALED(end[0])))
            time.sleep(0.02)
        return None

    def _status(self, child: int) -> int | None:
        """Returns the exit status of a worker; None while it runs."""
        if child not in self.exit_statuses:
            done, status = os.waitpid(child, os.WNOHANG)
            if not done:
                return None
            self.exit_statuses[child] = status
        return self.exit_statuses[child]


def refuse_few_files(size: int) -> None:
    """Raises ConfigError if this process may not open the files that so many workers need."""
    import resource  # Windows, where nothing forks, has none

    needed = len([*Path("/dev/fd").iterdir()]) + FILES + FILES_EACH * size
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        raise ConfigError(
            f"{size} workers need {needed} open files, but the system allows {allowed}; raise the limit (ulimit -n "
            f"{needed}) or set engine.workers=1"
        )


def _exit_message(status: int, rank: int, read: int) -> str:
    with open(read, "rb", closefd=False) as pipe:
        text = pipe.read().decode(errors="replace").strip()
    if os.WIFSIGNALED(status):
        return f"worker {rank} was killed by signal {os.WTERMSIG(status)}"
    if not text:
        return f"worker {rank} ended early"
    reason, _, trace = text.partition("\n")
    if trace:
        log.error("worker %d failed: %s\n%s", rank, reason, trace, extra={logs.FILE_ONLY: True})
    return f"worker {rank} failed: {reason}"


def _run_worker(first: int, write: int, work: Callable[[], None]) -> NoReturn:
    """Runs a worker process to its exit; never returns into the code that forked it."""
    status = 1
    try:
        signals.die_with(first)
        logs.silence()
        signals.ignore_termination()  # the first process gets them, too, and ends this one
        work()
        status = 0
    except BaseException as error:
        defect = f"{type(error).__name__}: {first_line(error)}\n{traceback.format_exc()}"
        os.write(write, (explain_in_one_line(error) or defect).encode()[:ERROR_BYTES])
    finally:
        os._exit(status)
