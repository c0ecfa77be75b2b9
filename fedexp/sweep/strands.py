"""Runs in threads of their own of which only one moves at a time, so that their code needs to know of no threads.

A strand moves while somebody waits in `resume`, until it asks for something or ends. What a run sets for the whole
process (where log lines go, standard output, the environment, how exactly a GPU multiplies) comes and goes with it.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from fedexp.core.cpu_cores import SHARE


@dataclass(frozen=True)
class Standing:
    """What a run sets for its whole process."""

    handlers: list[logging.Handler]
    level: int
    disabled: int
    streams: tuple[TextIO, TextIO]
    share: str | None
    tf32: tuple[Any, Any]

    @classmethod
    def now(cls) -> "Standing":
        """As it is."""
        import torch.backends as kinds

        root, tf32 = logging.getLogger(), (kinds.cuda.matmul.allow_tf32, kinds.cudnn.allow_tf32)
        streams = sys.stdout, sys.stderr
        return cls(root.handlers[:], root.level, root.manager.disable, streams, os.environ.get(SHARE), tf32)

    def restore(self) -> None:
        """Makes it so again."""
        import torch.backends as kinds

        root = logging.getLogger()
        root.handlers[:] = self.handlers
        if (root.level, root.manager.disable) != (self.level, self.disabled):  # every logger would forget what it knows
            root.setLevel(self.level)
            logging.disable(self.disabled)
        sys.stdout, sys.stderr = self.streams
        os.environ.pop(SHARE, None)
        os.environ.update({} if self.share is None else {SHARE: self.share})
        kinds.cuda.matmul.allow_tf32, kinds.cudnn.allow_tf32 = self.tf32


class Strand:
    """A function in a thread of its own; what it asks for is in `asked`, what it came to in `result` or `error`."""

    def __init__(self, work: Callable[["Strand"], Any]) -> None:
        self.asked: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.over = False
        self.interrupt: BaseException | None = None
        self._heard, self._answer = False, None
        self._go, self._rests = threading.Semaphore(0), threading.Event()
        threading.Thread(target=self._live, args=[work], daemon=True).start()

    def resume(self, answer: Any = None) -> None:
        """Has it move until it asks for something or ends; an answer that is an exception is raised there.

        An interrupt of this thread is raised in the strand as soon as it heeds it, and here once the strand is over.
        """
        ours, before = Standing.now(), self.interrupt
        self._answer = answer
        self._rests.clear()
        self._go.release()
        while not self._rests.is_set():
            try:
                self._rests.wait()
            except KeyboardInterrupt as interrupt:
                self.interrupt = self.interrupt or interrupt
        ours.restore()
        if self.interrupt is not before and self.interrupt is not None:
            raise self.interrupt

    def end(self, interrupt: BaseException) -> None:
        """Raises an interrupt in it, unless it has heard of one, and waits for its end."""
        while not self.over:
            self.interrupt = self.interrupt or interrupt
            self.resume(self.interrupt)

    def ask(self, what: Any) -> Any:
        """Inside: gives way until there is an answer."""
        self.heed()
        mine, self.asked = Standing.now(), what
        self._rests.set()
        self._go.acquire()
        mine.restore()
        self.asked = None
        if isinstance(self._answer, BaseException):
            self._heard |= self._answer is self.interrupt
            raise self._answer
        return self._answer

    def heed(self) -> None:
        """Inside: raises the interrupt that has come since, but only once: what it interrupts may still save."""
        if self.interrupt is not None and not self._heard:
            self._heard = True
            raise self.interrupt

    def _live(self, work: Callable[["Strand"], Any]) -> None:
        self._go.acquire()
        try:
            self.result = work(self)
        except BaseException as error:
            self.error = error
        self.over = True
        self._rests.set()
