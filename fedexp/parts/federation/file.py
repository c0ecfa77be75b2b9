"""Reads the partition from a file: an owner for each training example, in the order of the dataset.

A CSV file with a header and a line for each example, the owner in `column` (which may be left out where there is only
one), or a `.npy` file with a vector of whole numbers. Owners are whole numbers or names. Each different owner is a
client; clients are numbered in ascending order of the owners. -1 or an empty cell means nobody (in a vector, also NaN):
the example is unused. Whole numbers may be written as 2.0 or 2e+00; 007 is a name.
"""

import csv
import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from fedexp.files.user_csv import rows_with_lines, separator_name
from fedexp.parts import ConfigError, Facts, Federation, Partition, did_you_mean, find_user_file, first_line, stamp
from fedexp.parts.federation.owners import partition_by_owner

NOBODY = -1
EXACT = 2**53  # from here on floats skip whole numbers
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")


def number_owners(owner: np.ndarray) -> tuple[np.ndarray, int]:
    """Numbers the clients: the client of each example of `owner [S]`, int64 [S], -1 for nobody; and their count."""
    missing = owner == (NOBODY if owner.dtype.kind in "iu" else "")
    names, client = np.unique(owner[~missing], return_inverse=True)
    numbers = np.full(len(owner), NOBODY, dtype=np.int64)
    numbers[~missing] = client
    return numbers, len(names)


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

    def resolve_subjects(self, subjects: np.ndarray | None) -> np.ndarray:
        return self._owners()[0]

    def subject_names(self, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return self._owners()[2]

    def split(
        self, labels: np.ndarray, subjects: np.ndarray | None, classes: int, rng: np.random.Generator
    ) -> Partition:
        assert subjects is not None
        clients = self._owners()[1]
        return partition_by_owner(np.where(subjects < 0, clients, subjects), clients)

    def _file(self) -> Path:
        return find_user_file(self.path, self.directory, "federation.path", ".csv or .npy")

    def _owners(self) -> tuple[np.ndarray, int, tuple[str, ...] | None]:
        file = self._file()
        return _read(self.column, file.suffix, stamp(file))


@lru_cache(maxsize=1)
def _read(
    column: str | None, suffix: str, source: tuple[tuple[str, int, int], ...]
) -> tuple[np.ndarray, int, tuple[str, ...] | None]:
    """The client of each example, how many clients there are, and their names if they are no numbers.

    The file is read once while its size and time stay the same. A link's own name has the `suffix`.
    """
    file = Path(source[0][0])
    owner = _read_vector(file) if suffix == ".npy" else _read_column(file, column)
    if owner.dtype.kind == "i" and owner.min(initial=0) < -1:
        raise ConfigError(f"{file} must hold owners from 0, or -1 for nobody, got {owner.min()}")
    client, clients = number_owners(owner)
    if not clients:
        raise ConfigError(f"{file} must name an owner for some example, but names none")
    names = None if owner.dtype.kind in "iu" else tuple(np.unique(owner[owner != ""]).tolist())
    return client, clients, names


def _read_vector(file: Path) -> np.ndarray:
    try:
        array = np.array(np.load(file, mmap_mode="r"))  # a file that is shorter than its header says cannot be mapped
    except Exception as error:  # of many kinds, where the header is damaged
        raise ConfigError(f"{file} cannot be read as a .npy file: {first_line(error)}") from None
    if array.dtype.kind == "f":  # as programs hold whole numbers with gaps
        filled = np.where(np.isnan(array), NOBODY, array.astype(np.float64))
        if (np.floor(filled) == filled).all() and (np.abs(filled) < EXACT).all():
            array = filled.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ConfigError(
            f"{file} must hold a vector of whole numbers, the owner of each training example, got {array.dtype} "
            f"{list(array.shape)}"
        )
    return array


def _read_column(file: Path, column: str | None) -> np.ndarray:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(rows_with_lines(stream))
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise ConfigError(f"{file} cannot be read as a CSV file with a header: {error}") from None
    if not rows:
        raise ConfigError(f"{file} must have a header and a line for each training example, but is empty")
    (_, header), *rows = rows
    position, cells = _column_position(file, header, column), []
    for line, row in rows:
        row = row or [""]  # the reader gives nothing for a line that is one empty cell
        if len(row) != len(header):
            raise ConfigError(f"line {line} of {file} must have {len(header)} cells like its header, got {row}")
        if "\0" in row[position]:
            raise ConfigError(f"line {line} of {file} holds a NUL character, which no name has; save the file as UTF-8")
        cells.append(row[position].strip())
    return _parse_owners(cells)


def _column_position(file: Path, header: list[str], column: str | None) -> int:
    if column is None and len(header) > 1:
        raise ConfigError(
            f"federation.column must name one of the columns {', '.join(header)} of {file}, got null; e.g. "
            f"federation.column={header[0]}"
        )
    if len(header) == 1 and column != header[0] and (between := separator_name(header[0])):
        raise ConfigError(f"{file} must have commas between its cells, got {between}; save it with commas")
    if column is not None and column not in header:
        raise ConfigError(f"federation.column={column} is not in {file}; {did_you_mean(column, header)}")
    if column is not None and [name.strip() for name in header].count(column.strip()) > 1:
        raise ConfigError(f"{file} has several columns named {column}; give each a name of its own")
    return 0 if column is None else header.index(column)


def _parse_owners(cells: list[str]) -> np.ndarray:
    """The cells as whole numbers if all are numbers or empty; else as texts, empty where a cell says nobody."""
    numbers = [_parse_whole_number(cell) for cell in cells]
    if all(number is not None for number in numbers):
        return np.array(numbers, dtype=np.int64)
    return np.array(["" if number == NOBODY else cell for cell, number in zip(cells, numbers, strict=True)])


def _parse_whole_number(cell: str) -> int | None:
    """Parses a cell as a whole number, also in the forms of programs that know only fractions (2.0, 2e+00).

    None for every other text, for 007, which is not 7, and for what floats cannot hold exactly.
    """
    if not cell:
        return NOBODY
    if not _NUMBER.fullmatch(cell) or abs(number := float(cell)) >= EXACT or not number.is_integer():
        return None
    return int(number)
