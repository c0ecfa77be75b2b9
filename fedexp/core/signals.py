"""Signals that end a process: SIGTERM (a scheduler, `kill`) and SIGHUP (a closed terminal) act like Ctrl-C.

Windows has no SIGHUP.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

END_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class TerminationSignal(KeyboardInterrupt):
    """Raised in the main thread when such a signal arrives; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def raise_on_termination() -> Iterator[None]:
    """Raises AskedToEnd in the main thread at the first of these signals; an ignored one (nohup) stays ignored.

    A second one changes nothing: the state is being saved.
    """
    before = {number: signal.getsignal(number) for number in END_SIGNALS}
    alone = threading.current_thread() is threading.main_thread()
    ours = [number for number, handler in before.items() if alone and handler is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, _raise)
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


@contextmanager
def count_interrupts() -> Iterator[list[int]]:
    """Yields a list that gets every Ctrl-C received inside: user code may raise KeyboardInterrupt itself."""
    arrived: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    ours = callable(before) and threading.current_thread() is threading.main_thread()

    def count(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        if callable(before):
            before(number, frame)

    try:
        if ours:
            signal.signal(signal.SIGINT, count)
        yield arrived
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Lets a Ctrl-C or such a signal act at the end of the block, which must be done whole; a second one acts at once.

    An interrupt within a fork leaves locks behind on which later threads wait for ever.
    """
    arrived: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *END_SIGNALS)} if is_main else {}
    before = {number: handler for number, handler in handlers.items() if callable(handler)}

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        if len(arrived) > 1:
            before[number](number, frame)

    try:
        for number in before:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is note:  # else a second signal has set what is to be
                signal.signal(number, handler)
        if len(arrived) == 1:
            signal.raise_signal(arrived[0])


@contextmanager
def end_at_once() -> Iterator[None]:
    """Lets Ctrl-C and such a signal end the process at once, also while it waits in code that is not Python's."""
    numbers = (signal.SIGINT, *END_SIGNALS) if threading.current_thread() is threading.main_thread() else ()
    before = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    try:
        for number in before:
            signal.signal(number, signal.SIG_DFL)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def find_interrupt(error: BaseException) -> KeyboardInterrupt | None:
    """The Ctrl-C, or such a signal, in place of which a library raised an error; None if there was none.

    A KeyboardInterrupt that an error names as its cause is none: the user's own code raised it (`refuse_errors`).
    """
    current, visited = error, set[int]()
    while current is not None and id(current) not in visited:  # an error may be its own cause
        visited.add(id(current))
        behind = current.__cause__ or current.__context__
        if isinstance(behind, KeyboardInterrupt if current.__cause__ is None else TerminationSignal):
            return behind
        current = behind
    return None


def ignore_termination() -> None:
    """Ignores these signals in a process that its parent will end: both of them receive the signal."""
    for number in (signal.SIGINT, *END_SIGNALS):
        signal.signal(number, signal.SIG_IGN)


def die_with(parent: int) -> None:
    """On Linux the kernel ends this process when its parent ends; elsewhere its next message to the parent fails."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """The exit code that a shell expects of a process ended by such a signal."""
    return 128 + (interrupt.number if isinstance(interrupt, TerminationSignal) else signal.SIGINT)


def _raise(number: int, _: FrameType | None) -> NoReturn:
    for signum in END_SIGNALS:
        signal.signal(signum, signal.SIG_IGN)
    raise TerminationSignal(number)
