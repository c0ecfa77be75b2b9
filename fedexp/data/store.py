"""The files of datasets: where they are, their checksums, and a cache of parsed arrays.

A cache that cannot be read is made again.
"""

import hashlib
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from fedexp.core.errors import ConfigError, nearest_hint
from fedexp.data import npy_header
from fedexp.files.atomic import atomic_path

Arrays = dict[str, np.ndarray]
_LISTED = 1000  # of a folder's entries, among which a mistyped name is looked up


def cache_dir() -> Path:
    """FEDEXP_CACHE, else `~/.cache/fedexp`: holds what can be made again, and which parts this user trusts."""
    return Path(os.environ.get("FEDEXP_CACHE") or Path.home() / ".cache" / "fedexp").expanduser()


def data_root() -> Path:
    """The default of `data_dir`: FEDEXP_DATA, else a folder in the cache."""
    return Path(os.environ.get("FEDEXP_DATA") or cache_dir() / "data").expanduser()


def find_user_path(path: Path, directory: Path, fits: Callable[[Path], bool]) -> Path | None:
    """A user's own file or folder; a relative path is looked up in the current folder, then in the data root."""
    with suppress(RuntimeError):  # ~NAME of nobody here
        path = path.expanduser()
    return next((candidate for candidate in (path, directory / path) if fits(candidate)), None)


def find_user_file(path: Path, directory: Path, key: str, ending: str) -> Path:
    """A user's own file, looked up by `find_user_path`.

    Raises:
        ConfigError: there is none; names the key that says where it is, and what it must be.
    """
    if (user_file := find_user_path(path, directory, os.path.isfile)) is not None:
        return user_file
    if (existing := find_user_path(path, directory, os.path.lexists)) is not None:
        problem = f"{existing} is a folder, a pipe, or a link that leads nowhere"
    else:
        names = dict.fromkeys(name for folder in (path.parent, directory / path.parent) for name in _names(folder))
        hint = nearest_hint(path.name, [*names])
        problem = f"there is no {path} here or in {directory}; {hint or 'give its path'}"
    raise ConfigError(f"{key} must be a {ending} file, but {problem}")


def _names(folder: Path) -> list[str]:
    """The names of the first of what lies in a folder; none if it cannot be read."""
    with suppress(OSError):
        return sorted(entry.name for entry in islice(folder.iterdir(), _LISTED))
    return []


def stamp(*files: Path) -> tuple[tuple[str, int, int], ...]:
    """Path, size and time of files, which identify what was parsed from them."""
    return tuple((str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files)


def digest(path: Path, algorithm: str = "md5") -> str:
    """The checksum of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def load_or_make(name: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays stored under a name in the cache; they are made and stored if absent or damaged.

    The name must hold everything the arrays depend on. Where the cache cannot be written they are just made. Large ones
    stay in the cache, and are read when they are used.
    """
    path = cache_dir() / "parsed" / f"{name}.npz"
    if (cached_arrays := _read_cache(path)) is not None:
        return cached_arrays
    arrays = make()
    with suppress(OSError), atomic_path(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    large = max((array.nbytes for array in arrays.values()), default=0) >= npy_header.LARGE
    return (_read_cache(path) if large else None) or arrays


def _read_cache(path: Path) -> Arrays | None:
    """The arrays of a file of the cache, whose CRC-32 are compared; None if it is absent or damaged."""
    try:
        if path.stat().st_size < npy_header.LARGE:
            with path.open("rb") as file:
                return dict(np.load(file))
        npy_header.verify_checksums(path)
        return {name: npy_header.read(path, name) for name in npy_header.headers(path)}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile, zlib.error):
        return None
