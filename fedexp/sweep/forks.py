"""The points of a sweep shared out to forks of this process, which have its imports already.

Each process has every n-th point, so that the same points meet in one process whatever time they take. It asks for its
points one by one, and tells how each ended. The points of one that dies are taken up again, twice at most.
"""

import os
import signal
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import cycle
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

from fedexp.core import signals
from fedexp.core.exits import Stopped
from fedexp.sweep.launchers.contract import Ends, PointEnd, after_death

Work = Callable[[Iterator[Path]], Ends]


class Fork:
    """One process, and the points that are its."""

    def __init__(self, work: Work, lines: list[Any]) -> None:
        """`lines` are the parent's ends of those to all its forks, which hold them open as long as they hold them."""
        self.work, self.lines = work, lines
        self.waiting: deque[Path] = deque()
        self.flying: list[Path] = []
        self.start()

    def start(self) -> None:
        """Forks."""
        self.line, theirs = connection.Pipe()
        self.lines.append(self.line)
        self.process = get_context("fork").Process(target=_live, args=(theirs, self.lines, self.work, os.getpid()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads; we have none
            self.process.start()
        theirs.close()

    def end(self) -> None:
        """Asks it to save and to end, and waits for that."""
        self.process.terminate()
        self.process.join()
        self.line.close()
        self.lines.remove(self.line)


class Forks:
    """As many processes as `jobs`; each does `work` with the points that it is given."""

    def __init__(self, jobs: int, todo: Iterator[Path], work: Work) -> None:
        lines: list[Any] = []
        self.forks = [Fork(work, lines) for _ in range(jobs)]
        self.todo = zip(todo, cycle(self.forks), strict=False)
        self.deaths: Counter[Path] = Counter()

    def ends(self) -> Ends:
        """How each point ended."""
        try:
            while self.forks:
                lines = {fork.line: fork for fork in self.forks}
                for line in connection.wait(list(lines)):
                    yield from self._heard(lines[line])  # pyright: ignore[reportArgumentType]
        finally:
            for fork in self.forks:
                fork.end()

    def _heard(self, fork: Fork) -> list[PointEnd]:
        try:
            said: PointEnd | None = fork.line.recv()
            if said is None:
                fork.line.send(self._next(fork))
                return []
        except (EOFError, OSError):
            return self._over(fork)
        fork.flying.remove(said.folder)
        return [said]

    def _next(self, fork: Fork) -> Path | None:
        """The next point of a process; those of others that come before are put by."""
        while not fork.waiting:
            folder, whose = next(self.todo, (None, None))
            if folder is None or whose is None:
                return None
            whose.waiting.append(folder)
        fork.flying.append(fork.waiting.popleft())
        return fork.flying[-1]

    def _over(self, fork: Fork) -> list[PointEnd]:
        """What is to be told of a process that has ended: it is begun again where it has left something."""
        fork.end()
        again, killed = after_death(fork.flying, self.deaths)
        fork.waiting.extendleft(reversed(again))
        fork.flying.clear()
        if fork.waiting:
            fork.start()
        else:
            self.forks.remove(fork)
        return killed


def _live(line: Any, inherited: list[Any], work: Work, parent: int) -> None:
    """The whole life of a process. Ctrl-C is for the parent alone, which asks this one to end."""
    from fedexp.training.fork import die_with

    die_with(parent)
    for each in inherited:
        each.close()  # or no process would notice that the parent has ended
    signals.ignored()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(Stopped, KeyboardInterrupt, EOFError), signals.heeded(), closing(work(_asked_for(line))) as ends:
        for end in ends:
            line.send(end)


def _asked_for(line: Any) -> Iterator[Path]:
    """The points that this process is given."""
    line.send(None)
    while (folder := line.recv()) is not None:
        yield folder
        line.send(None)
