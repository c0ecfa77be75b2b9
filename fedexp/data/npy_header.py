"""The arrays in a .npz file: shape and type from their headers, and large ones mapped instead of read.

A damaged file shows in errors of many kinds: of `zipfile`, of each compression, of NumPy's parser of headers. All of
them are one here, ConfigError.
"""

import math
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from fedexp.core.errors import ConfigError, first_line

LARGE = 2**28  # bytes from which an array is mapped
_LENGTHS = 26  # where an entry of a zip archive says how long its name and its extra field are, just before these
_CHUNK = 2**20


@dataclass(frozen=True)
class Header:
    """What is written in front of a stored array."""

    shape: tuple[int, ...]
    dtype: np.dtype


def headers(path: Path) -> dict[str, Header]:
    """The header of every array in the file, each as long as its header says."""
    with _readable(f"{path} cannot be read as a .npz file"), zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        stems = Counter(name.removesuffix(".npy") for name in archive.namelist())
        if twice := next((name for name, count in stems.items() if count > 1), None):
            raise ValueError(f"it holds several arrays named {twice}")
        return {name.removesuffix(".npy"): _header(archive, name) for name in names}


def read(path: Path, name: str) -> np.ndarray:
    """An array (any shape), mapped if it is large; else its checksum in the archive is compared."""
    with _readable(f"{name} in {path} cannot be read"):
        if (array := memory_map(path, name)) is not None:
            return array
        with np.load(path, allow_pickle=False) as stored:
            return stored[name]


def memory_map(path: Path, name: str) -> np.ndarray | None:
    """A large array (any shape) as a map of the file, whose pages are read when they are used; None if it must be read.

    It must be stored without compression, as `np.savez` does. Writing to it does not change the file. The checksum of
    the archive is not compared, since that would read it all.
    """
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo(f"{name}.npy")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size < LARGE:
            return None
    with path.open("rb") as file:
        file.seek(entry.header_offset + _LENGTHS)
        file.seek(sum(struct.unpack("<HH", file.read(4))), 1)
        shape, in_columns, dtype = _fields(file)
        if dtype.hasobject:
            return None
        return np.memmap(path, dtype, "c", file.tell(), shape, "F" if in_columns else "C")


def verify_checksums(path: Path) -> None:
    """Reads all that the file holds, piece by piece; ConfigError if something is not what its checksum says."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with _readable(f"{name} in {path} is damaged"), archive.open(name) as file:
                while file.read(_CHUNK):
                    pass


def _header(archive: zipfile.ZipFile, name: str) -> Header:
    with archive.open(name) as file:
        shape, _, dtype = _fields(file)
        stored_bytes, declared_bytes = archive.getinfo(name).file_size - file.tell(), math.prod(shape) * dtype.itemsize
    if stored_bytes != declared_bytes and not dtype.hasobject:
        raise ValueError(
            f"{name} holds {stored_bytes:,} bytes, but its header says {declared_bytes:,}, for an array of shape "
            f"{shape}"
        )
    return Header(shape, dtype)


def _fields(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read(file)


@contextmanager
def _readable(otherwise: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise ConfigError(
            f"{otherwise}: {first_line(error) or type(error).__name__}; write it again with np.savez"
        ) from None
