"""What the system does not let a command write, said in words that name the flag to change."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.open_folders import FolderGoneError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def explain_unwritable(path: Path, flag: str) -> Iterator[None]:
    """For a block that writes `path`, which the user chose by `flag`.

    Raises:
        ConfigError: there can be no such file or folder; for want of room the OSError goes on, as for long names.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, FolderGoneError) or error.errno in (*_NO_ROOM, errno.ENAMETOOLONG):
            raise
        raise ConfigError(f"cannot write {display_path(path)}: {system_reason(error)}; give another {flag}") from error


def system_reason(error: OSError) -> str:
    """Why the system made no file or folder; what exists already can only be a file in the place of a folder above."""
    return os.strerror(errno.ENOTDIR) if error.errno == errno.EEXIST else error.strerror or str(error)
