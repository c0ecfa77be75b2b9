"""Locks: files that one process at a time may hold."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from filelock import lock_descriptor

from fedexp.files.open_folders import refuse_other_folder
from fedexp.files.untrusted import open_regular


@contextmanager
def file_lock(path: Path, patience_s: float = math.inf) -> Iterator[TextIO]:
    """Holds the lock of a file, made if need be, against all other processes; the system frees it when they die.

    On a file system without locks nobody is kept out.

    Raises:
        ConfigError: the path is a link, a pipe or a folder.
        FolderGoneError: it lies below a folder that was opened and is no longer there.
        TimeoutError: somebody else has held it all the time.
    """
    refuse_other_folder(path)
    with os.fdopen(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+", encoding="utf-8") as file:
        deadline = time.monotonic() + patience_s
        while not _lock(file):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} is held by another process")
            time.sleep(0.05)
        yield file


def _lock(file: TextIO) -> bool:
    try:
        return lock_descriptor(file.fileno(), blocking=False)
    except OSError:  # no locks here
        return True
