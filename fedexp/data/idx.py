"""The idx format of the MNIST files: magic number, big-endian dimensions, then bytes.

http://yann.lecun.com/exdb/mnist/ (section "file formats"); here only unsigned bytes, type 0x08.
"""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from fedexp.core.errors import ConfigError

UNSIGNED_BYTES = b"\0\0\x08"


def _parse_array(content: bytes) -> np.ndarray:
    if content[:3] != UNSIGNED_BYTES:
        raise ValueError(f"not an idx file of bytes, it begins with {content[:3].hex()}")
    start = 4 + 4 * content[3]
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    if len(content) - start != math.prod(shape):
        raise ValueError(f"{len(content) - start:,} bytes do not make an array of shape {shape}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def find_file(directory: Path, folder: str, stem: str, shape: tuple[int, ...], cure: str) -> Path:
    """The file of an array of this shape, compressed or not, found by its size; ConfigError if there is none."""
    size = _size(shape)
    faults = []
    for path in (directory / folder / f"{stem}.gz", directory / folder / stem):
        content_size = unpacked_size(path) if path.is_file() else None
        if content_size == size:
            return path
        if content_size is not None:
            subject = f"{path} is cut off, or another file: its end says that it" if path.suffix == ".gz" else path
            faults.append(f"{subject} holds {content_size:,} bytes, must hold {size:,}")
    raise ConfigError(f"{'; '.join(faults) or f'no {folder}/{stem}.gz in {directory}'} ({cure})")


def read(path: Path, shape: tuple[int, ...], cure: str) -> np.ndarray:
    """The read-only array of a file, which must have this `shape` (any shape); `.gz` files are decompressed."""
    try:
        array = _parse_array(_gunzip(path, _size(shape)) if path.suffix == ".gz" else path.read_bytes())
    except (OSError, EOFError, zlib.error, struct.error, IndexError, ValueError) as error:
        raise ConfigError(f"{path} is damaged: {error}; {cure}") from None
    if array.shape != shape:
        raise ConfigError(f"{path} holds an array of shape {array.shape}, must be {shape} ({cure})")
    return array


def _gunzip(path: Path, most: int) -> bytes:
    with gzip.open(path) as file:
        content = file.read(most + 1)  # a few bytes may unpack to more than memory holds
    if len(content) > most:
        raise ValueError(f"it holds more than {most:,} bytes")
    return content


def _size(shape: tuple[int, ...]) -> int:
    """The bytes of a file of an array."""
    return 4 + 4 * len(shape) + math.prod(shape)


def unpacked_size(path: Path) -> int:
    """The size of the decompressed file, which gzip writes at the end (modulo 2^32), without reading it."""
    if path.suffix != ".gz":
        return path.stat().st_size
    with path.open("rb") as file:
        file.seek(-min(4, path.stat().st_size), 2)
        return int.from_bytes(file.read(), "little")
