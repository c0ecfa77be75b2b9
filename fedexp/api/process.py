"""How a run fits into the process of a script: one at a time, and its errors as exceptions in a script's words."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fedexp.api.python_messages import in_python_words
from fedexp.core.errors import ConfigError, OneLineError, RunError
from fedexp.core.imports import own_files
from fedexp.process.exits import CommandExit

_RUN_LOCK = threading.RLock()
_RUNS: list[int] = []  # runs at work, more than one where a script looks at a run between the rounds of another
_LOOPS: list[int] = []  # open loops over rounds, at most one: the process could not be given back to two in turn


class InterruptionError(OneLineError, KeyboardInterrupt):
    """Ctrl-C, or the button that interrupts a notebook; the message says how to go on."""


@contextmanager
def one_run_at_a_time() -> Iterator[None]:
    """Allows one run at a time: logging, signals and environment belong to the process; threads would share them.

    What lies in files of one's own that have changed is imported again.
    """
    if not _RUN_LOCK.acquire(blocking=False):
        raise ConfigError("run makes one run at a time in a process, but another thread runs one; start processes")
    if not _RUNS:
        own_files.forget_changed()
    _RUNS.append(1)
    try:
        yield
    finally:
        _RUNS.pop()
        _RUN_LOCK.release()


@contextmanager
def unwrapped_errors() -> Iterator[None]:
    """Raises the error behind an exit, which the command line would have printed in one line.

    Messages name arguments of functions instead of flags.
    """
    try:
        yield
    except CommandExit as stop:
        if stop.is_interrupted:
            raise InterruptionError(in_python_words(stop.message)) from None
        if stop.__cause__ is None:
            raise
        _put_in_python_words(stop.__cause__)
        raise stop.__cause__ from None
    except KeyboardInterrupt as interrupt:
        raise InterruptionError(str(interrupt) or "interrupted") from None
    except ConfigError as error:
        _put_in_python_words(error)
        raise


@contextmanager
def failed_points_as_error() -> Iterator[None]:
    """Raises RunError where points of a sweep failed, for which the command line has an exit code."""
    try:
        yield
    except CommandExit as stop:
        if stop.is_interrupted or stop.__cause__ is not None:
            raise
        raise RunError(in_python_words(stop.message)) from stop


def _put_in_python_words(error: BaseException) -> None:
    if isinstance(error, ConfigError | RunError):
        error.args = (in_python_words(str(error)),)


def is_loop_open() -> bool:
    """Whether a loop over rounds is open."""
    return bool(_LOOPS)


@contextmanager
def one_loop_at_a_time() -> Iterator[None]:
    """Allows one open loop over rounds."""
    if _LOOPS:
        raise ConfigError("a loop over the rounds of another run is open; end or close it first, or start processes")
    _LOOPS.append(1)
    try:
        yield
    finally:
        _LOOPS.pop()
