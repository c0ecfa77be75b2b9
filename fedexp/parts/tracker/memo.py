"""tracker.json: which run of a tracker a folder belongs to and what of it has arrived; whole or not at all."""

import json
import os
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from fedexp.core.files import write_atomically
from fedexp.core.locks import locked

NAME, LOCK = "tracker.json", ".tracker.lock"


@dataclass(frozen=True)
class Memo:
    """`token` marks the run, so that it is found again even if nobody heard that it was made.

    `round` is the last one that has certainly arrived, `files` whether all has that a finished run leaves. Everything
    is dated from `began_ms`, so that what is sent twice is the same twice.
    """

    tracker: str = ""
    token: str = ""
    began_ms: int = 0
    run: str = ""
    place: str = ""
    round: int = 0
    files: bool = False


def load(folder: Path, tracker: str) -> Memo:
    """The folder's memo; a new one where there is none, where it is damaged or where it is another tracker's."""
    try:
        content = json.loads((folder / NAME).read_text(encoding="utf-8"))
        memo = Memo(**{field.name: content[field.name] for field in fields(Memo)})
    except (OSError, ValueError, TypeError, KeyError):
        memo = Memo()
    if memo.tracker == tracker:
        return memo
    return Memo(tracker, token=os.urandom(8).hex(), began_ms=int(time.time() * 1000))


def save(folder: Path, memo: Memo) -> None:
    """Writes the memo."""
    write_atomically(folder / NAME, (json.dumps(asdict(memo), indent=2) + "\n").encode())


def alone(folder: Path, patience_s: float) -> AbstractContextManager[object]:
    """Holds a folder's tracker against other processes; raises TimeoutError where one has it all the time."""
    return locked(folder / LOCK, patience_s)
