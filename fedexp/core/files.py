"""Files that are whole or absent: made under a temporary name, synced, renamed."""

import fcntl
import math
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


@contextmanager
def making(target: Path) -> Iterator[Path]:
    """A name beside `target` for a file or folder in the making; what is left of it afterwards is removed.

    Folders that had to be made for it go as well while they are empty, so a failure leaves nothing.
    """
    absent = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        yield part
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        part.unlink(missing_ok=True)
        with suppress(OSError):
            for folder in absent:
                folder.rmdir()


def publish(part: Path, target: Path) -> None:
    """Gives a complete file its final name; a crash leaves the old one or the new one."""
    _sync(part)
    part.replace(target)
    _sync(target.parent)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A name beside `target` for a file that is published when the block ends well, and else goes."""
    with making(target) as part:
        yield part
        publish(part, target)


def write_atomically(target: Path, content: bytes) -> None:
    """Writes a whole small file."""
    with replacing(target) as part:
        part.write_bytes(content)


@contextmanager
def locked(path: Path, patience_s: float = math.inf) -> Iterator[TextIO]:
    """Holds the lock of a file, made if need be, against all other processes; the system frees it when they die.

    On a file system without locks nobody is kept out.

    Raises:
        TimeoutError: somebody else has held it all the time.
    """
    with path.open("a+", encoding="utf-8") as file:
        deadline = time.monotonic() + patience_s
        while not _lock(file):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} is held by another process")
            time.sleep(0.05)
        yield file


def _lock(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks here
        return True
    return True


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def shown(path: Path) -> str:
    """A path as the user would type it here."""
    return os.path.relpath(path) if path.absolute().is_relative_to(Path.cwd()) else str(path)
