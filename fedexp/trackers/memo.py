"""tracker.json: which run of a tracker a folder belongs to and what of it has arrived; whole or not at all."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from fedexp.files import write_atomically

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


@contextmanager
def alone(folder: Path, patience_s: float) -> Iterator[None]:
    """Holds a folder's lock, which the system takes back from a process that dies.

    Raises:
        TimeoutError: somebody else has held it all the time.
    """
    with (folder / LOCK).open("a") as file:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{folder / LOCK} is held by another process") from None
                time.sleep(0.05)
        yield
