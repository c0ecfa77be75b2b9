"""CSV files written by users: the header, the line on which each row begins, the separator, tables of numbers."""

import csv
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError

OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def rows_with_lines(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file, each with the number of the line it begins on: a quoted cell may hold line breaks.

    Raises:
        csv.Error: quotes are not closed, or stand where none may.
    """
    reader, begin = csv.reader(lines, strict=True), 1
    for row in reader:
        yield begin, row
        begin = reader.line_num + 1


def read_header(path: Path) -> list[str]:
    """The cells of the first line of a file that is not blank, which names its columns; none of an empty file.

    Raises:
        OSError, csv.Error: it cannot be read.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return next((row for row in csv.reader(file) if len(row) > 1 or "".join(row).strip()), [])


def demand_unique_names(path: Path | str, names: Sequence[str]) -> None:
    """Raises ConfigError if two columns have one name, apart from blanks around it.

    Readers would rename the second, or keep one of them: a target would be among the features.
    """
    name, count = max(Counter(name.strip() for name in names).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        problem = f"{count} are named {name[:60]}" if name else f"{count} have none"
        raise ConfigError(f"{path} must have a name of its own for each column, but {problem}; rename or remove them")


def separator_name(header: str) -> str | None:
    """The name of the separator in a header without commas; None if it has commas or only one cell."""
    return None if "," in header else next((word for sign, word in OTHER_SEPARATORS.items() if sign in header), None)


def read_numbers(path: Path, key: str, columns: Sequence[str], optional: Sequence[str] = ()) -> Any:
    """The columns of a CSV file, optional ones where it has them, as floats; NaN where a cell is no number.

    Blank lines are left out. The index of a row is its line in the file less 2. `key` is the config key that named the
    file.

    Raises:
        ConfigError: it cannot be read, or lacks a column.
    """
    import pandas as pd

    try:
        demand_unique_names(path, read_header(path))
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # lines with more cells than the header
            table = pd.read_csv(path, skip_blank_lines=False, index_col=False, dtype=str)
    except ConfigError:
        raise
    except (OSError, ValueError, csv.Error, pd.errors.ParserWarning) as error:
        raise ConfigError(f"{key}={path} must be a CSV file, but it cannot be read: {error}") from error
    table = table.dropna(how="all")
    if set(columns) - set(table.columns):
        raise ConfigError(f"{key}={path} must have the columns {','.join(columns)}, got {','.join(table.columns)}")
    columns = (*columns, *(name for name in optional if name in table.columns))
    return table.loc[:, list(columns)].apply(pd.to_numeric, errors="coerce").astype(float)
