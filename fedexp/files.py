"""Files that are whole or absent: written under a temporary name, synced, renamed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it takes the name when the block ends well, else it goes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a whole small file."""
    write_with(path, lambda file: file.write(content))


def write_with(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Lets `write` fill a file that appears only when it is complete."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        write(file)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
