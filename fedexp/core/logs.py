"""Where log lines go: plain on the console, dated in `fedexp.log` of the run folder."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATED = "[%(asctime)s] %(levelname)s %(message)s"


def log_to(folder: Path, console: bool = True) -> None:
    """What `hydra.job_logging` of conf/config.yaml does, where Hydra does not; without the console where not wanted."""
    file = logging.FileHandler(folder / "fedexp.log", encoding="utf-8")
    file.setFormatter(logging.Formatter(DATED))
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.handlers[:] = [logging.StreamHandler(sys.stdout), file] if console else [file]


def on_console() -> bool:
    """Whether somebody watches: whether log lines go anywhere but to files."""
    return any(not isinstance(handler, logging.FileHandler) for handler in logging.getLogger().handlers)


def leave_out_on_terminals(mark: str) -> None:
    """Lines with this mark go to files and pipes alone from now on, by the handlers that there are."""
    for handler in logging.getLogger().handlers:
        stream = getattr(handler, "stream", None)
        if stream is not None and stream.isatty():
            handler.addFilter(lambda record: not hasattr(record, mark))


def silence() -> None:
    """Ends the log of a process that only helps.

    Every process of a run executes the same rounds, and a fork even holds its parent's handlers: what all of them
    notice is for the first one to tell. A job that has something of its own to tell must return it.
    """
    logging.disable(logging.CRITICAL)


@contextmanager
def kept() -> Iterator[None]:
    """Puts logging back as it was, closing the files that were opened meanwhile."""
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
