"""Shape and type of the arrays in a .npz file, from their headers, without reading the arrays."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from fedexp.core.errors import ConfigError


@dataclass(frozen=True)
class Header:
    """What is written in front of a stored array."""

    shape: tuple[int, ...]
    dtype: np.dtype


def headers(path: Path) -> dict[str, Header]:
    """The header of every array in the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            return {name.removesuffix(".npy"): _header(archive, name) for name in names}
    except (OSError, zipfile.BadZipFile, ValueError, EOFError) as error:
        raise ConfigError(f"{path} cannot be read as a .npz file: {error}") from None


def _header(archive: zipfile.ZipFile, name: str) -> Header:
    with archive.open(name) as file:
        shape, dtype = _fields(file)
    return Header(shape, dtype)


def _fields(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype
