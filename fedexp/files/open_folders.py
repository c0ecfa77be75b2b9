"""The folders that this process works in: what is written below one of them goes into the folder that was opened.

A folder may be removed, renamed or replaced while it is in use. Its path then leads to another folder, or to none that
a writer would make anew.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_identities: dict[Path, os.stat_result] = {}  # by every path that the folder was opened under


class FolderGoneError(OSError):
    """A path no longer leads to the folder or the file that was opened."""


@contextmanager
def open_folder(folder: Path) -> Iterator[None]:
    """Until the block ends, `refuse_other_folder` refuses what lies below this path but in another folder.

    Raises:
        FolderGoneError: there is no such folder, or it lies below a folder that is gone.
    """
    refuse_other_folder(folder)
    identity = _stat(folder)
    if identity is None:
        raise _folder_gone_error(folder)
    # While it is open, no other folder gets its number; Windows opens no folders.
    pinned = os.open(folder, os.O_RDONLY) if hasattr(os, "O_DIRECTORY") else None
    names = {folder, folder.absolute()} - _identities.keys()
    _identities.update(dict.fromkeys(names, identity))
    try:
        yield
    finally:
        for name in names:
            del _identities[name]
        if pinned is not None:
            os.close(pinned)


def refuse_other_folder(path: Path) -> None:
    """Raises FolderGoneError if a folder above the path, or the path itself, was opened and is now another or none."""
    if not _identities:
        return
    absolute = path.absolute()
    for name in reversed((path, *path.parents, absolute, *absolute.parents)):  # the outermost is the cause
        identity = _identities.get(name)
        if identity is not None and not _is_same(identity, _stat(name)):
            raise _folder_gone_error(name)


def refuse_other_file(path: Path, handle: int) -> None:
    """Raises FolderGoneError if the path no longer leads to the file that is open as `handle`."""
    refuse_other_folder(path)
    if not _is_same(os.fstat(handle), _stat(path)):
        raise _folder_gone_error(path)


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, but none anew that was opened; raises FolderGoneError then."""
    refuse_other_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_same(identity: os.stat_result, now: os.stat_result | None) -> bool:
    return now is not None and os.path.samestat(identity, now)


def _folder_gone_error(path: Path) -> FolderGoneError:
    here = os.path.relpath(path) if path.absolute().is_relative_to(Path.cwd()) else path
    return FolderGoneError(f"{here} was removed, renamed or replaced while it was in use")
