"""Refuses files that somebody else may have made: links, pipes and devices, which could lead elsewhere; zip bombs."""

import errno
import os
import stat
import zipfile
from pathlib import Path

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path

FOLDERS = (".hydra", "states", "tensorboard")  # of a run folder; names with the endings below must be files
ENDINGS = (".pt", ".csv", ".json", ".log", ".yaml", ".txt", ".png", ".lock", ".journal", ".db")
# A link is not followed, a pipe not waited for; on Windows nothing is taken for text.
_SAFE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOINHERIT", "O_BINARY"))
_KINDS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder", stat.S_IFREG: "a file"}


def refuse_special_files(folder: Path, *, writing: bool = False) -> None:
    """Refuses a folder in which reading or writing could reach files outside, or could block for ever.

    Raises:
        ConfigError: something below is a link, a pipe or a device, or a folder has a file's name or the reverse; if
            `writing`, also if a file has a second name elsewhere (a hard link).
    """
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *files)):
            _refuse_special(path, writing=writing)


def refuse_special_outputs(folder: Path) -> None:
    """Like `refuse_special_files`, for a folder in which a run is to begin: only what it would write.

    Raises:
        ConfigError: a link, a pipe or a device has a name that a run writes.
    """
    for path in folder.glob("*"):
        if path.name in FOLDERS or path.name.endswith(ENDINGS):
            _refuse_special(path, writing=True)
    for name in FOLDERS:
        refuse_special_files(folder / name, writing=True)


def _refuse_special(path: Path, *, writing: bool) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:  # another process has just removed it
        return
    name, mode = path.name, status.st_mode
    if writing and stat.S_ISREG(mode) and status.st_nlink > 1:
        raise ConfigError(
            f"{display_path(path)} must be a file of its own, but it has another name elsewhere; copy the folder"
        )
    suits_folder = stat.S_ISDIR(mode) and not name.endswith(ENDINGS)
    suits_file = stat.S_ISREG(mode) and name not in FOLDERS
    if not (suits_folder or suits_file):
        raise _special_file_error(path, mode)


def open_regular(path: Path, flags: int) -> int:
    """The handle of a regular file.

    Raises:
        ConfigError: it is something else, which is not opened.
    """
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise _special_file_error(path, stat.S_IFLNK)
    try:
        handle = os.open(path, flags | _SAFE, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _special_file_error(path, path.lstat().st_mode) from error
        raise
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise _special_file_error(path, mode)
    return handle


def read_regular(path: Path, largest: int) -> bytes:
    """The content of a regular file.

    Raises:
        ConfigError: it is something else, or has more than so many bytes.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        if os.fstat(file.fileno()).st_size > largest:
            raise ConfigError(f"{display_path(path)} must have at most {largest:,} bytes; restore it")
        return file.read()


def is_stored(path: Path) -> bool:
    """Whether a zip archive is as large as all that is in it, as `torch.save` writes it; reads no entry.

    A compressed one of 2 MB may unpack to 2 GB.

    Raises:
        OSError, zipfile.BadZipFile: it cannot be read as an archive.
    """
    with zipfile.ZipFile(path) as archive:
        return sum(entry.file_size for entry in archive.infolist()) <= path.stat().st_size


def _special_file_error(path: Path, mode: int) -> ConfigError:
    wanted = "folder" if path.name in FOLDERS else "file"
    kind = _KINDS.get(stat.S_IFMT(mode), "a device")
    return ConfigError(f"{display_path(path)} must be a {wanted} of its own, but it is {kind}; remove it")
