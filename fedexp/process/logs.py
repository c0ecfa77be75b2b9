"""Where log lines go: plain on the console, dated in `fedexp.log` of the run folder."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from fedexp.process.terminal import EscapedFormatter

_NOTES: ContextVar[set[str] | None] = ContextVar("notes of the runs so far", default=None)

FILE_ONLY = "of_the_file"  # marks the lines that only the log file of a run gets
DATED_FORMAT = "[%(asctime)s] %(levelname)s %(message)s"


def log_to(folder: Path, console: bool = True) -> None:
    """Sets logging up as `hydra.job_logging` of conf/config.yaml does, for runs that Hydra does not start."""
    file = logging.FileHandler(folder / "fedexp.log", encoding="utf-8")
    file.setFormatter(EscapedFormatter(DATED_FORMAT))
    stream = logging.StreamHandler(sys.stdout)
    stream.setFormatter(EscapedFormatter())
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.handlers[:] = [stream, file] if console else [file]


def on_console() -> bool:
    """Whether log lines go anywhere but to files."""
    silent = logging.root.manager.disable >= logging.CRITICAL
    return not silent and any(map(_is_heard, logging.getLogger().handlers))


def _is_heard(handler: logging.Handler) -> bool:
    discarded = getattr(getattr(handler, "stream", None), "name", None) == os.devnull
    return not isinstance(handler, logging.FileHandler) and not discarded


def leave_out_on_terminals(mark: str) -> None:
    """Keeps lines with this mark off the terminals that the present handlers write to; files and pipes get them."""
    for handler in logging.getLogger().handlers:
        stream = getattr(handler, "stream", None)
        if stream is not None and stream.isatty():
            handler.addFilter(lambda record: not hasattr(record, mark))


@contextmanager
def notes_once() -> Iterator[None]:
    """Has the runs in this block tell apart notes that one of them said before."""
    token = _NOTES.set(set())
    try:
        yield
    finally:
        _NOTES.reset(token)


def notes_are_shared() -> bool:
    """Whether this is one run of several in a block of `notes_once`, as a point of a sweep is."""
    return _NOTES.get() is not None


def is_repeated(note: str) -> bool:
    """Whether a run in the same block of `notes_once` said this note before; remembers it."""
    notes = _NOTES.get()
    if notes is None or note in notes:
        return notes is not None
    notes.add(note)
    return False


def leave_out_on_console(mark: str) -> None:
    """Keeps lines with this mark off the console; files get them."""
    for handler in logging.getLogger().handlers:
        if not isinstance(handler, logging.FileHandler):
            handler.addFilter(lambda record: not hasattr(record, mark))


def silence() -> None:
    """Turns off the log of a worker process.

    Every process of a run executes the same rounds, and a forked one inherits its parent's handlers: only the first
    process logs what all of them see. A job that has something of its own to report must return it.
    """
    logging.disable(logging.CRITICAL)


@contextmanager
def restore_logging() -> Iterator[None]:
    """Restores the logging settings afterwards and closes the files that were opened meanwhile."""
    root = logging.getLogger()
    handlers, level, disabled = root.handlers[:], root.level, logging.root.manager.disable
    try:
        yield
    finally:
        for handler in root.handlers:
            if handler not in handlers:
                handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.disable(disabled)
