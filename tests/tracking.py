"""Runs with a tracker, a real MLflow server, and what has arrived there: what the tests of trackers share."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from processes import Command, ended, forget, fork

from fedexp.cli import main
from fedexp.parts.tracker import memo, sender

FAST = (
    *("dataset=synthetic", "dataset.train_size=100", "dataset.test_size=50"),
    *("engine=loop", "engine.workers=1", "pictures=false"),
)
PATIENT = "tracker.patience_s=60"
PROGRESS = "progress.txt"  # what is told while a database is made
LEFTOVERS = (".mlflow.db.7-0123abcd.part", ".mlflow.db.7-0123abcd.part-journal")  # of a process that was killed


def ask(database: Path, question: str) -> list[tuple]:
    """What a database answers, its rows in ascending order."""
    connection = sqlite3.connect(database)
    try:
        return sorted(connection.execute(question).fetchall())
    finally:
        connection.close()


def rounds_of(database: Path, metric: str = "test_loss") -> list[int]:
    """The steps of a metric that are there, as often as they are."""
    return [step for (step,) in ask(database, f"select step from metrics where key = '{metric}'")]


def run(*words: str, folder: str = "run", code: int = 0) -> Path:
    """A run in this process."""
    patient = () if "tracker=none" in words else (PATIENT,)
    assert main(["run", *FAST, *patient, *words, f"hydra.run.dir=outputs/{folder}"]) == code
    return Path("outputs") / folder


def said(folder: Path, about: str) -> list[str]:
    """The lines of the log that a tracker is the subject of."""
    lines = (folder / "fedexp.log").read_text().splitlines()
    return [line.partition("O ")[2] or line.partition("G ")[2] for line in lines if f" {about}: " in line]


def wait_until(reached: Callable[[], bool], patience_s: float = 60) -> None:
    deadline = time.monotonic() + patience_s
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Server:
    """A real MLflow server that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.database = folder, folder / "server.db"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self.process is not None:
            return
        files = str(self.folder / "files")
        words = ("--backend-store-uri", f"sqlite:///{self.database}", "--artifacts-destination", files)
        quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *words, "--port", str(self.port), "--workers", "1"],
            cwd=self.folder,
            env={**os.environ, **quiet},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until(self.answers, 120)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


class Copy:
    """A sender as the courier starts it, but a copy of this process: what trackers import, it has imported already."""

    def __init__(self, order: str) -> None:
        (theirs, write), (read, ours) = os.pipe(), os.pipe()
        self.code: int | None = None
        self.pid = fork()
        if not self.pid:
            os.setpgid(0, 0)
            for number, handle in enumerate((theirs, ours, os.open(os.devnull, os.O_WRONLY))):
                os.dup2(handle, number)
            os.closerange(3, 256)
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
            forget()
            ended(sender.main)
        os.close(theirs)
        os.close(ours)
        os.set_blocking(read, False)
        self.stdin, self.stdout = os.fdopen(write, "wb", 0), os.fdopen(read, "rb", 0)
        self.stdin.write(f"{order}\n".encode())

    def poll(self) -> int | None:
        if self.code is None and (done := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.code = os.waitstatus_to_exitcode(done[1])
        return self.code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.002)
        assert self.code is not None
        return self.code


def start_and_kill(folder: Path, *words: str) -> Path:
    """A run that is killed, with all that it started, once some of its rounds have arrived.

    It is held in the middle until they have: what sends them may take longer to begin than the run to end.
    """
    command = Command(Path.cwd(), "run", *words, f"hydra.run.dir={folder}")
    wait_until(lambda: command.over() or (folder / "state.pt").exists())
    os.kill(command.pid, signal.SIGSTOP)
    wait_until(lambda: memo.load(folder, tracker_of(words)).round > 0)
    assert command.kill() == -signal.SIGKILL
    return folder


def tracker_of(words: tuple[str, ...]) -> str:
    """The tracker that the words ask for."""
    return next(word.partition("=")[2] for word in words if word.startswith("tracker="))
