"""Reports on stderr what `fedexp plan` is doing, so that the screen is never silent for long."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SILENCE_S = 1.5


class Telling:
    """Prints a short line when a step begins, and more while it lasts."""

    def __init__(self) -> None:
        self.doing, self.since, self.told = "loading the program", time.perf_counter(), time.perf_counter()
        self.stage: Callable[[], str] = str
        self.over = threading.Event()

    def begin(self, doing: str, aloud: bool = True) -> None:
        """Names the present step; `aloud` prints it at once, else only if it lasts."""
        self.doing, self.since = doing, time.perf_counter()
        if aloud:
            self._say(doing)

    def keep_on(self) -> None:
        """Prints what is being done, and for how long, until it is over."""
        while not self.over.wait(0.1):
            now = time.perf_counter()
            if now - self.told >= SILENCE_S:
                stage = self.stage()
                self._say(f"{self.doing}{': ' if stage else ''}{stage}, {now - self.since:.0f} s")

    def _say(self, line: str) -> None:
        self.told = time.perf_counter()
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


@contextmanager
def telling() -> Iterator[Telling]:
    """Reports from a thread; forked processes do not have it."""
    voice = Telling()
    thread = threading.Thread(target=voice.keep_on, name="telling", daemon=True)
    thread.start()
    try:
        yield voice
    finally:
        voice.over.set()
        thread.join()
