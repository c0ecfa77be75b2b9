"""Writes files atomically: under a temporary name, synced, then renamed."""

import os
import re
import secrets
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fedexp.files.open_folders import make_folder, refuse_other_folder

_PART = re.compile(r"\.(.+)\.\d+-[0-9a-f]{8}\.part(?:-journal)?")  # SQLite keeps a journal beside a file
_POSIX = hasattr(os, "O_DIRECTORY")  # Windows opens no folders, and syncs no file that is open for reading only


@contextmanager
def scratch_path(target: Path) -> Iterator[Path]:
    """Yields a temporary name beside `target`; what is left under that name afterwards is removed.

    Parent folders that were made for it are removed as well while they are empty, so a failure leaves nothing.

    Raises:
        FolderGoneError: the target lies below a folder that was opened and is no longer there.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    with make_parents(target):
        try:
            yield part
        finally:
            if part.is_dir():
                shutil.rmtree(part, ignore_errors=True)
            part.unlink(missing_ok=True)


@contextmanager
def make_parents(target: Path) -> Iterator[None]:
    """Makes the folders above `target`; those that are new and still empty at the end are removed."""
    absent = [folder for folder in target.parents if not folder.exists()]
    try:
        make_folder(target.parent)
        yield
    finally:
        for folder in absent:
            with suppress(OSError):
                folder.rmdir()


def publish(part: Path, target: Path) -> None:
    """Gives a complete file its final name; a crash leaves the old one or the new one."""
    refuse_other_folder(target)
    _sync(part)
    part.replace(target)
    _sync(target.parent)


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yields a temporary name beside `target`; the file is published if the block succeeds, else removed."""
    with scratch_path(target) as part:
        yield part
        publish(part, target)


def write_atomically(target: Path, content: bytes) -> None:
    """Writes a small file at once."""
    with atomic_path(target) as part:
        part.write_bytes(content)


def remove_leftovers(folder: Path, is_target: Callable[[str], bool]) -> None:
    """Removes the unfinished files of these names that killed processes left; nobody else may be writing any."""
    for path in folder.glob(".*.part*"):
        match = _PART.fullmatch(path.name)
        if match is not None and is_target(match[1]):
            shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    if path.is_dir() and not _POSIX:
        return
    handle = os.open(path, os.O_RDONLY if _POSIX else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def display_path(path: Path) -> str:
    """A path as the user would type it here."""
    return os.path.relpath(path) if path.absolute().is_relative_to(Path.cwd()) else str(path)


def shell_path(path: Path) -> str:
    """A path as a word of a command that is to be copied: in quotes where a shell would split or expand it."""
    return shlex.quote(display_path(path))
