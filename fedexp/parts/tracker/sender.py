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
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedexp.core.files import remove_leftovers
from fedexp.core.open_folders import open_folder, refuse_other_folder
from fedexp.core.part import build
from fedexp.core.passwords import without_password
from fedexp.parts.tracker import lines, memo
from fedexp.parts.tracker.contract import Order, Receiver, Sending

PERIOD_S, LONGEST_PAUSE_S, SHARE = 0.5, 30.0, 1000
LOG = 3  # file descriptor for messages to the run's log


class Ending:
    """How the run ended; waits for it."""

    def __init__(self) -> None:
        self.status = ""
        self.told = threading.Event()

    def hear(self) -> None:
        """Waits until the run sends its final status."""
        self.status = sys.stdin.readline().strip()
        if not self.status:
            os._exit(1)
        self.told.set()


class Sender:
    """Sends one folder to one tracker."""

    def __init__(self, tracker: Sending, order: Order, ending: Ending) -> None:
        self.tracker, self.order, self.ending = tracker, order, ending
        self.receiver: Receiver | None = None
        self.memo = memo.load(order.folder, tracker.package)
        self.position = 0  # in metrics.csv; lines before it have arrived
        self.complained = False

    def work(self) -> bool:
        """Sends until the run has ended; returns whether everything has arrived."""
        pause = PERIOD_S
        while True:
            last = self.ending.told.is_set()
            try:
                self.deliver(last)
                pause = PERIOD_S
            except Exception as error:
                self.complain(error)
                self.receiver = None
                if last:
                    return False
                pause = min(2 * pause, LONGEST_PAUSE_S)
            else:
                if last:
                    return True
            self.ending.told.wait(pause)

    def deliver(self, last: bool) -> None:
        """Sends new rounds, and after the end the rest; raises also if the folder is gone."""
        refuse_other_folder(self.order.folder)
        if self.receiver is None:
            self.connect()
        assert self.receiver is not None
        new, position = lines.after(self.order.folder / "metrics.csv", self.memo.round, self.position)
        for batch in lines.batches(new, SHARE):
            self.receiver.send(batch)
            self.keep(round=batch[-1].round, files=False)
        self.position = position
        if last:
            summary = None if self.memo.files else lines.summary(self.order.folder, self.memo.round)
            files = [] if self.memo.files else lines.files(self.order.folder)
            self.receiver.finish(self.ending.status, summary, files)
            self.keep(files=self.memo.files or self.ending.status == "FINISHED")

    def connect(self) -> None:
        """Opens the connection; a run that the tracker has lost is sent from the beginning."""
        self.keep()
        receiver, known = self.tracker.open(self.order, self.memo), self.memo
        self.memo = receiver.begin()
        self.keep()
        if not known.run:
            say(f"run {self.memo.run} at {self.memo.place}")
        self.receiver, self.position = receiver, 0

    def keep(self, **news: Any) -> None:
        """Changes and saves the state of sending."""
        self.memo = replace(self.memo, **news)
        memo.save(self.order.folder, self.memo)

    def complain(self, error: Exception) -> None:
        """Reports an error, the first time only."""
        if not self.complained:
            say(f"the run goes on without: {plainly(error)}")
        self.complained = True


def plainly(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def say(text: str) -> None:
    """Writes one line for the run's log."""
    os.write(LOG, f"{without_password(text)}\n".encode())


def hush() -> None:
    """Reserves the standard output for the log: output of packages goes to stderr."""
    os.dup2(sys.stdout.fileno(), LOG)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


def main() -> int:
    """Reads the order from standard input and sends the run."""
    hush()
    order: Mapping[str, Any] = json.loads(sys.stdin.readline())
    tracker: Sending = build(order["tracker"], "tracker")
    folder, ending = Path(order["folder"]), Ending()
    threading.Thread(target=ending.hear, daemon=True).start()
    known = {**order["parameters"], **lines.choices(folder)}
    try:
        with open_folder(folder), memo.alone(folder, tracker.patience_s):
            remove_leftovers(folder, lambda name: name == memo.NAME)
            done = Sender(tracker, Order(folder, known, order["tags"]), ending).work()
    except Exception as error:
        say(f"nothing is sent: {plainly(error)}")
        done = False
    return 0 if done else 1


if __name__ == "__main__":
    os._exit(main())  # threads of a tracker's package may hang
