"""Reports on stderr what `fedexp plan` is doing, so that the screen is never silent for long."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SILENCE_S = 1.5


class ProgressReporter:
    """Prints a short line when a step begins, and more while it lasts."""

    def __init__(self) -> None:
        self.step, self.step_start, self.last_print = "loading the program", time.perf_counter(), time.perf_counter()
        self.stage: Callable[[], str] = str
        self.stopped = threading.Event()

    def begin_step(self, step: str, print_now: bool = True) -> None:
        """Names the present step; `print_now` prints it at once, else only if it lasts."""
        self.step, self.step_start = step, time.perf_counter()
        if print_now:
            self._print(step)

    def print_until_stopped(self) -> None:
        """Prints what is being done, and for how long, until it is over."""
        while not self.stopped.wait(0.1):
            now = time.perf_counter()
            if now - self.last_print >= SILENCE_S:
                stage = self.stage()
                self._print(f"{self.step}{': ' if stage else ''}{stage}, {now - self.step_start:.0f} s")

    def _print(self, line: str) -> None:
        self.last_print = time.perf_counter()
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


@contextmanager
def report_progress() -> Iterator[ProgressReporter]:
    """Reports from a thread; forked processes do not have it."""
    reporter = ProgressReporter()
    thread = threading.Thread(target=reporter.print_until_stopped, name="telling", daemon=True)
    thread.start()
    try:
        yield reporter
    finally:
        reporter.stopped.set()
        thread.join()
