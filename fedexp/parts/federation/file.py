"""A file says who has what: an owner for each training example, in the order of the dataset.

A CSV file with a header and a line for each example, the owner in `column` (which may be left out where there is only
one), or a `.npy` file with a vector of whole numbers. Owners are whole numbers or names. Each different owner is a
client; clients are numbered in ascending order of the owners. -1 or an empty cell means nobody: the example is unused.
"""

import csv
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from fedexp.core.errors import ConfigError, nearest
from fedexp.data.store import own_file, stamp
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation.contract import Federation
from fedexp.parts.federation.owners import gather
from fedexp.parts.federation.partition import Partition

_WHOLE = re.compile(r"-?[0-9]{1,15}")


def numbered(owner: np.ndarray) -> tuple[np.ndarray, int]:
    """The client of each example, int64 [S], of `owner [S]` (numbers or texts), -1 for nobody; how many there are."""
    missing = owner == (-1 if owner.dtype.kind in "iu" else "")
    names, client = np.unique(owner[~missing], return_inverse=True)
    numbers = np.full(len(owner), -1, dtype=np.int64)
    numbers[~missing] = client
    return numbers, len(names)


@dataclass(frozen=True, kw_only=True)
class File(Federation):
    """A relative `path` is looked up in the current folder, then in `directory`, the data root."""

    path: Path
    directory: Path
    column: str | None = None

    def known_clients(self) -> int | None:
        return self._owners()[1]

    def refuse(self, facts: Facts) -> None:
        if (lines := len(self._owners()[0])) != facts.train_size:
            raise ConfigError(
                f"{self._file()} must have an owner for each of the {facts.train_size} training examples, in their "
                f"order, but it has {lines}; give one with {facts.train_size}"
            )

    def whose(self, subjects: np.ndarray | None) -> np.ndarray:
        return self._owners()[0]

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        assert subjects is not None
        clients = self._owners()[1]
        return gather(np.where(subjects < 0, clients, subjects), clients)

    def _file(self) -> Path:
        return own_file(self.path, self.directory, "federation.path", ".csv or .npy")

    def _owners(self) -> tuple[np.ndarray, int]:
        return _read(self.column, stamp(self._file()))


@lru_cache(maxsize=1)
def _read(column: str | None, source: tuple[tuple[str, int, int], ...]) -> tuple[np.ndarray, int]:
    """Reads the file once for all who ask, as long as its size and time stay."""
    file = Path(source[0][0])
    owner = _vector(file) if file.suffix == ".npy" else _column(file, column)
    if owner.dtype.kind == "i" and owner.min(initial=0) < -1:
        raise ConfigError(f"{file} must hold owners from 0, or -1 for nobody, got {owner.min()}")
    client, clients = numbered(owner)
    if not clients:
        raise ConfigError(f"{file} must name an owner for some example, but names none")
    return client, clients


def _vector(file: Path) -> np.ndarray:
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ConfigError(f"{file} cannot be read as a .npy file: {error}") from None
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
        came = f"{array.dtype} {list(array.shape)}" if isinstance(array, np.ndarray) else "several arrays"
        raise ConfigError(f"{file} must hold a vector of whole numbers, the owner of each training example, got {came}")
    return array


def _column(file: Path, column: str | None) -> np.ndarray:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            header, *lines = csv.reader(stream, strict=True)
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise ConfigError(f"{file} cannot be read as a CSV file with a header: {error}") from None
    if column is None and len(header) > 1:
        raise ConfigError(f"federation.column must name one of the columns {', '.join(header)} of {file}, got null")
    if column is not None and column not in header:
        raise ConfigError(f"federation.column={column} is not in {file}; {nearest(column, header)}")
    place = 0 if column is None else header.index(column)
    lines = [line or [""] for line in lines]  # the reader gives nothing for a line that is one empty cell
    if odd := next((number for number, line in enumerate(lines, 2) if len(line) != len(header)), None):
        raise ConfigError(f"line {odd} of {file} must have {len(header)} cells like its header, got {lines[odd - 2]}")
    return _typed([line[place].strip() for line in lines])


def _typed(cells: list[str]) -> np.ndarray:
    """Whole numbers where all cells are, or are empty; else texts."""
    if all(not cell or _WHOLE.fullmatch(cell) for cell in cells):
        return np.array([int(cell or -1) for cell in cells], dtype=np.int64)
    return np.array(cells, dtype=np.str_)
