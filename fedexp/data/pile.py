"""Arrays laid on one another, in a file where they are many, so that memory holds a part of them at a time."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.data import npy_header
from fedexp.data.store import cache_dir


class Pile:
    """Arrays `[s, ...]` of one type, with rows of one shape. Their file is in the cache folder and has no name."""

    def __init__(self) -> None:
        self.held: list[np.ndarray] = []
        self.held_bytes = self.rows = 0
        self.file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()

    def add(self, piece: np.ndarray) -> None:
        """Lays one array `[s, ...]` on the others; ConfigError if the disk is full."""
        self.held.append(piece)
        self.rows += len(piece)
        self.held_bytes += piece.nbytes
        if self.held_bytes >= npy_header.LARGE:
            self._put_down()

    def whole(self) -> np.ndarray:
        """All of them, at least one, as `[S, ...]`; a large one is a map of the file, which may be closed then."""
        if self.file is None:
            return np.concatenate(self.held)
        self._put_down()
        one = self.held[0]
        return np.memmap(self.file, one.dtype, "c", 0, (self.rows, *one.shape[1:]))

    def _put_down(self) -> None:
        try:
            self.file = self.file or tempfile.TemporaryFile(dir=_folder())  # noqa: SIM115
            for piece in self.held:
                self.file.write(np.ascontiguousarray(piece).data)
            self.file.flush()
        except OSError as error:
            where = _folder() or tempfile.gettempdir()
            raise ConfigError(
                f"{where} must have room for the parsed examples, but: {error.strerror}; set FEDEXP_CACHE to a folder "
                "that has"
            ) from None
        self.held, self.held_bytes = [self.held[0][:0]], 0  # what is left tells the type and the shape of a row


def _folder() -> Path | None:
    """Where the user has room for large files; None, which is the system's place for temporary ones, if nowhere."""
    folder = cache_dir() / "parsed"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder if os.access(folder, os.W_OK) else None
