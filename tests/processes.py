"""The command line as processes to kill: forked where its imports are done already, which saves two seconds each."""

import multiprocessing
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from fedexp import cli

IMPORTED = (
    *(
        "fedexp.cli",
        "fedexp.commands.launch",
        "fedexp.run.run",
        "fedexp.sweep.multirun",
        "fedexp.search.search",
        "pandas",
    ),
    *("hydra._internal.core_plugins.basic_launcher", "torch.func", "torch.distributed", "sklearn.cluster"),
)
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(list(IMPORTED))


class Command:
    """`fedexp ...` in a folder and a process group of its own; nothing of it has run in the process it is forked from.

    What it says is in the folder's `said.txt`.
    """

    def __init__(self, folder: Path, *words: str) -> None:
        self.said = folder / "said.txt"
        self.process = FORKS.Process(target=obey, args=(folder, words, dict(os.environ)))
        self.process.start()

    def over(self) -> bool:
        return not self.process.is_alive()

    def kill(self) -> int:
        """Kills the whole group; returns how the process ended: -9 unless that was before."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self.wait()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def wait(self, patience_s: float = 120) -> int:
        self.process.join(patience_s)
        assert self.process.exitcode is not None, "it has not ended"
        return self.process.exitcode

    def finish(self) -> None:
        assert self.wait() == 0, self.said.read_text()


def obey(folder: Path, words: tuple[str, ...], environment: dict[str, str]) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with (folder / "said.txt").open("ab") as said:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
    try:
        code = cli.main(words)
    finally:  # pools still open end here, as in any Python; else multiprocessing would wait for them first
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    sys.exit(code)
