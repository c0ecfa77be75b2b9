"""Sends a run's files to its tracker, in a process of its own, so that a tracker's failures and delays spare the run.

Its standard input says what to send (one line of JSON) and later how the run ended. If the input ends without that, the
run was killed, and this process ends, too; resuming the run starts another. Its messages are few: the address of the
tracker's run, and the first error. It keeps trying after errors, and a new connection first asks what has arrived.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedexp.core.part import build
from fedexp.files.atomic import remove_leftovers
from fedexp.files.open_folders import open_folder, refuse_other_folder
from fedexp.files.url_credentials import without_password
from fedexp.parts.tracker import lines, memo
from fedexp.parts.tracker.contract import Order, Receiver, SendingTracker

PERIOD_S, LONGEST_PAUSE_S, SHARE = 0.5, 30.0, 1000
LOG = 3  # file descriptor for messages to the run's log


class Sender:
    """Sends one folder to one tracker."""

    def __init__(self, tracker: SendingTracker, order: Order, outcome: Future[str]) -> None:
        self.tracker, self.order, self.outcome = tracker, order, outcome
        self.receiver: Receiver | None = None
        self.state = memo.load(order.folder, tracker.package)
        self.position = 0  # in metrics.csv; lines before it have arrived
        self.has_reported_error = False

    def send_until_end(self) -> bool:
        """Sends until the run has ended; returns whether everything has arrived."""
        pause = PERIOD_S
        while True:
            last = self.outcome.done()
            try:
                self.send_new(last)
                has_sent, pause = True, PERIOD_S
            except Exception as error:
                self.report_error(error)
                self.receiver = None
                has_sent, pause = False, min(2 * pause, LONGEST_PAUSE_S)
            if last:
                return has_sent
            wait([self.outcome], pause)

    def send_new(self, last: bool) -> None:
        """Sends new rounds, and after the end the rest; raises also if the folder is gone."""
        refuse_other_folder(self.order.folder)
        if self.receiver is None:
            self.connect()
        assert self.receiver is not None
        new, position = lines.rounds_after(self.order.folder / "metrics.csv", self.state.round, self.position)
        for batch in lines.batches(new, SHARE):
            self.receiver.send(batch)
            self.save_state(round=batch[-1].round, files=False)
        self.position = position
        if last:
            summary = None if self.state.files else lines.summary(self.order.folder, self.state.round)
            files = [] if self.state.files else lines.files(self.order.folder)
            self.receiver.finish(self.outcome.result(), summary, files)
            self.save_state(files=self.state.files or self.outcome.result() == "FINISHED")

    def connect(self) -> None:
        """Opens the connection; a run that the tracker has lost is sent from the beginning."""
        self.save_state()
        receiver, before = self.tracker.open(self.order, self.state), self.state
        self.state = receiver.begin()
        self.save_state()
        if self.state.place != before.place:
            log_line(f"run {self.state.run} at {self.state.place}")
        self.receiver, self.position = receiver, 0

    def save_state(self, **changes: Any) -> None:
        """Changes and saves the state of sending."""
        self.state = replace(self.state, **changes)
        memo.save(self.order.folder, self.state)

    def report_error(self, error: Exception) -> None:
        """Reports an error, the first time only."""
        if not self.has_reported_error:
            log_line(f"the run goes on without: {describe_error(error)}")
        self.has_reported_error = True


def describe_error(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def log_line(text: str) -> None:
    """Writes one line for the run's log."""
    os.write(LOG, f"{without_password(text)}\n".encode())


def read_status(outcome: Future[str]) -> None:
    """Waits until the run sends its final status, the `outcome`; ends this process if the run is gone without."""
    status = sys.stdin.readline().strip()
    if not status:
        os._exit(1)
    outcome.set_result(status)


def redirect_stdout() -> None:
    """Reserves the standard output for the log: output of packages goes to stderr."""
    os.dup2(sys.stdout.fileno(), LOG)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


def main() -> int:
    """Reads the order from standard input and sends the run."""
    redirect_stdout()
    order: Mapping[str, Any] = json.loads(sys.stdin.readline())
    tracker: SendingTracker = build(order["tracker"], "tracker")
    folder, outcome = Path(order["folder"]), Future[str]()
    threading.Thread(target=read_status, args=(outcome,), daemon=True).start()
    parameters = {**order["parameters"], **lines.choices(folder)}
    try:
        with open_folder(folder), memo.lock_tracker(folder, tracker.patience_s):
            remove_leftovers(folder, lambda name: name == memo.NAME)
            done = Sender(tracker, Order(folder, parameters, order["tags"]), outcome).send_until_end()
    except BaseException as error:  # a tracker of the user's own may want to exit
        log_line(f"nothing is sent: {describe_error(error)}")
        done = False
    return 0 if done else 1


if __name__ == "__main__":
    os._exit(main())  # threads of a tracker's package may hang
