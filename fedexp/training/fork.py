"""Local workers: copies of this process that share its memory, and that never outlive it or die unnoticed."""

import ctypes
import os
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import NoReturn

import torch
import torch.distributed as dist

from fedexp.core import logs, signals
from fedexp.core.blame import one_line
from fedexp.training.workers import SharedCrew, join


class LocalWorkers:
    """The forked processes of one run, seen from the first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.children: dict[int, int] = {}  # pid -> reading end of the pipe that takes its error

    def start(self, follow: Callable[[SharedCrew], None]) -> SharedCrew | None:
        """Forks `size - 1` copies, each of which runs `follow` and ends; the first process's crew, None if alone."""
        if self.size == 1:
            return None
        listener = socket.create_server(("127.0.0.1", 0), backlog=self.size)
        port = listener.getsockname()[1]
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
        sys.stdout.flush()
        sys.stderr.flush()
        for rank in range(1, self.size):
            read, write = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads; none is ours
                child = os.fork()
            if child == 0:
                listener.close()
                _live(rank, self.size, port, write, follow)
            os.close(write)
            self.children[child] = read
        store = dist.TCPStore(
            "127.0.0.1", port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach()
        )
        return join(0, self.size, store, torch.device("cpu"))

    def stop(self) -> None:
        """Ends every worker that is still there."""
        for child, read in self.children.items():
            try:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
            os.close(read)
        self.children.clear()

    def explain(self, patience_s: float = 5.0) -> str | None:
        """The error of the first worker that has died, waiting a little for one to do so; None where all live."""
        if not self.children:
            return None
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            for rank, (child, read) in enumerate(self.children.items(), start=1):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    return _epitaph(rank, status, read)
            time.sleep(0.02)
        return None


def _epitaph(rank: int, status: int, read: int) -> str:
    with open(read, "rb", closefd=False) as pipe:
        text = pipe.read().decode(errors="replace").strip()
    if os.WIFSIGNALED(status):
        return f"worker {rank} was killed by signal {os.WTERMSIG(status)}"
    return f"worker {rank} failed: {text}" if text else f"worker {rank} ended early"


def _live(rank: int, size: int, port: int, write: int, follow: Callable[[SharedCrew], None]) -> NoReturn:
    """The whole life of a worker: never returns into the code that forked it."""
    status = 1
    try:
        _die_with_parent()
        logs.silence()
        signals.ignored()  # the first process hears them and ends us
        store = dist.TCPStore("127.0.0.1", port, is_master=False)
        follow(join(rank, size, store, torch.device("cpu")))
        status = 0
    except BaseException as error:
        os.write(write, (one_line(error) or traceback.format_exc()).encode())
    finally:
        os._exit(status)


def _die_with_parent() -> None:
    """On Linux the kernel ends the worker when the first process is gone; elsewhere its next message fails."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
