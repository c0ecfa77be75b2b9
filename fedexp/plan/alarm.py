"""A time limit for code that does not check the time itself; without signals (threads, Windows) there is no limit."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class TimeLimitExceeded(BaseException):
    """Time is up. Not an Exception, so that no handler on the way takes it for an error of its own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises GivenUp in the block once its time is up."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _raise_exceeded)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _raise_exceeded(*_: int | FrameType | None) -> NoReturn:
    raise TimeLimitExceeded
