"""Reads and writes tracker.json: the tracker's run of a folder, and what has arrived there; written atomically."""

import json
import os
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from fedexp.files.atomic import write_atomically
from fedexp.files.locks import file_lock

NAME, LOCK = "tracker.json", ".tracker.lock"


@dataclass(frozen=True)
class SyncState:
    """The state of sending one folder. `token` marks the tracker's run, so that it is found again after a crash.

    `round` is the last one known to have arrived; `files` whether all files of a finished run have. Times count from
    `began_ms`, so that a value sent twice has the same time twice.
    """

    tracker: str = ""
    token: str = ""
    began_ms: int = 0
    run: str = ""
    place: str = ""
    round: int = 0
    files: bool = False


def load(folder: Path, tracker: str) -> SyncState:
    """The folder's state of sending; a new one if the file is missing, damaged, or of another tracker."""
    try:
        content = json.loads((folder / NAME).read_text(encoding="utf-8"))
        state = SyncState(**{field.name: content[field.name] for field in fields(SyncState)})
    except (OSError, ValueError, TypeError, KeyError):
        state = SyncState()
    if state.tracker == tracker:
        return state
    return SyncState(tracker, token=os.urandom(8).hex(), began_ms=int(time.time() * 1000))


def save(folder: Path, state: SyncState) -> None:
    """Writes tracker.json."""
    write_atomically(folder / NAME, (json.dumps(asdict(state), indent=2) + "\n").encode())


def show_progress(folder: Path) -> None:
    """Tells the run that the sender is getting on, though nothing has arrived; its lock is there while it works."""
    os.utime(folder / LOCK)


def progress(folder: Path, tracker: str) -> tuple[int, bool, int]:
    """The last round that has arrived, whether the files have, and when the sender has last shown progress."""
    state, shown_ns = load(folder, tracker), 0
    with suppress(OSError):  # it has not begun
        shown_ns = (folder / LOCK).stat().st_mtime_ns
    return state.round, state.files, shown_ns


def lock_tracker(folder: Path, patience_s: float) -> AbstractContextManager[object]:
    """Locks a folder's tracker against other processes; raises TimeoutError if another one holds the lock too long."""
    return file_lock(folder / LOCK, patience_s)
