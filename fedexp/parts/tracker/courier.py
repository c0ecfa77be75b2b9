"""The run's side of a tracker: starts the sender, logs its messages, and reports at the end what was not sent."""

import json
import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedexp.files.atomic import shell_path
from fedexp.parts.tracker import lines, memo
from fedexp.process.exits import full_error

log = logging.getLogger(__name__)


class TrackerClient:
    """The client of a run without a tracker: sends nothing."""

    def listen(self) -> None:
        """Logs the sender's new messages; never waits."""

    def close(self, error: type[BaseException] | None) -> None:
        """Tells the sender how the run ended (`error` is None if well), and waits a while for it to finish."""


class ProcessClient(TrackerClient):
    """Runs the sender of a folder as a process. None of its failures is an error of the run."""

    def __init__(self, name: str, folder: Path, order: dict[str, Any], patience_s: float) -> None:
        self.name, self.folder, self.patience_s = name, folder, patience_s
        self.buffer = b""
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self.process = _start(json.dumps(order, default=str))
        except OSError as error:
            log.warning("%s: cannot be started: %s", name, error)

    def listen(self) -> None:
        if self.process is None:
            return
        assert self.process.stdout is not None
        while chunk := self.process.stdout.read(65536):
            self.buffer += chunk
        *messages, self.buffer = self.buffer.split(b"\n")
        for message in messages:
            log.info("%s: %s", self.name, message.decode(errors="replace"))

    def close(self, error: type[BaseException] | None) -> None:
        try:
            self._await_delivery(status(error))
        finally:
            self._stop_process()
        self._log_missing()

    def _await_delivery(self, run_status: str) -> None:
        """Waits until everything is sent, or until there is no progress for `patience_s`."""
        if self.process is None:
            return
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.write(f"{run_status}\n".encode())
        before, deadline = memo.progress(self.folder, self.name), time.monotonic() + self.patience_s
        while self.process.poll() is None:
            if (now := memo.progress(self.folder, self.name)) != before:
                before, deadline = now, time.monotonic() + self.patience_s
            if time.monotonic() > deadline:
                log.info("%s: no answer within tracker.patience_s=%g", self.name, self.patience_s)
                break
            time.sleep(0.02)
        self.listen()

    def _stop_process(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                with suppress(OSError):
                    pipe.close()

    def _log_missing(self) -> None:
        """Logs a warning if something has not arrived."""
        state = memo.load(self.folder, self.name)
        unsent = [line.round for line in lines.rounds_after(self.folder / "metrics.csv", state.round)[0]]
        missing = [f"rounds {unsent[0]} to {unsent[-1]}"] if unsent else []
        if (self.folder / "summary.json").exists() and not state.files:
            missing.append("the files")
        if missing:
            complaint = f"{' and '.join(missing)} did not arrive"
        elif self.process is None or self.process.poll():
            complaint = "whether all has arrived is not known"
        else:
            return
        log.warning("%s: %s; fedexp resume %s sends what is missing", self.name, complaint, shell_path(self.folder))


def status(error: type[BaseException] | None) -> str:
    """How a run ended, in MLflow's words."""
    if error is None:
        return "FINISHED"
    return "KILLED" if issubclass(error, KeyboardInterrupt) else "FAILED"


def _start(order: str) -> subprocess.Popen[bytes]:
    """Starts the sender in a process group of its own: Ctrl-C goes to the run, which tells the sender."""
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "fedexp.parts.tracker.sender"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if full_error() else subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        bufsize=0,
        process_group=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    process.stdin.write(f"{order}\n".encode())
    return process
