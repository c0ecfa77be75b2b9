"""Concatenates arrays through a temporary file, so that memory holds only a part of them at a time."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.data import npy_header
from fedexp.data.store import cache_dir


class SpillBuffer:
    """Collects arrays `[s, ...]` of one type and row shape; large ones go to an unnamed file in the cache folder."""

    def __init__(self) -> None:
        self.buffer: list[np.ndarray] = []
        self.buffer_bytes = self.rows = 0
        self.file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()

    def add(self, piece: np.ndarray) -> None:
        """Appends one array `[s, ...]`; ConfigError if the disk is full."""
        self.buffer.append(piece)
        self.rows += len(piece)
        self.buffer_bytes += piece.nbytes
        if self.buffer_bytes >= npy_header.LARGE:
            self._spill()

    def to_array(self) -> np.ndarray:
        """All rows as `[S, ...]`, of at least one array; many are a memory map of the file, which may be closed."""
        if self.file is None:
            return np.concatenate(self.buffer)
        self._spill()
        first = self.buffer[0]
        return np.memmap(self.file, first.dtype, "c", 0, (self.rows, *first.shape[1:]))

    def _spill(self) -> None:
        try:
            self.file = self.file or tempfile.TemporaryFile(dir=_folder())  # noqa: SIM115
            for piece in self.buffer:
                self.file.write(np.ascontiguousarray(piece).data)
            self.file.flush()
        except OSError as error:
            where = _folder() or tempfile.gettempdir()
            raise ConfigError(
                f"{where} must have room for the parsed examples, but: {error.strerror}; set FEDEXP_CACHE to a folder "
                "that has"
            ) from None
        self.buffer, self.buffer_bytes = [self.buffer[0][:0]], 0  # what is left tells the type and the shape of a row


def _folder() -> Path | None:
    """The user's folder for large files; None, meaning the system's temporary folder, if it cannot be written."""
    folder = cache_dir() / "parsed"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder if os.access(folder, os.W_OK) else None
