"""The one reader of a run's tables: what a column must hold follows from its name, and every file is checked.

`lines` reads a table as texts and stops at the first invalid line: for code that goes on from there, or compares cell
by cell. `frame` reads the whole table or raises. Both leave out a last line without a line break: the run that wrote it
may have been killed, or may still be running.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.core.csv_lines import demand_unique_names
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown

if TYPE_CHECKING:
    import pandas as pd

Line = dict[str, str]  # a table's cells by column

WHOLE = ("round", "client", "cluster", "participants", "examples")
NUMBERS = (
    *("test_loss", "test_accuracy", "validation_loss", "validation_accuracy", "train_loss"),
    *("mb_down", "mb_up", "select_s", "train_s", "aggregate_s", "evaluate_s", "host_s", "sim_s"),
    *("loss_before", "loss_after", "epsilon_rdp", "epsilon_pld", "distance"),
    *("global", "inside", "personal", "mean"),
)
_WHOLE_CELL = re.compile(r"-?\d{1,15}")


def lines(path: Path, needed: Sequence[str]) -> Iterator[Line]:
    """Yields the valid lines of a table that has these columns and starts with the first; nothing of other files."""
    content = path.read_bytes() if path.is_file() else b""
    columns: list[str] | None = None
    for raw in content[: content.rfind(b"\n") + 1].splitlines(keepends=True):
        cells = split(raw)
        if columns is None:
            if not cells or cells[0] != needed[0] or not set(needed) <= set(cells) or len(set(cells)) < len(cells):
                return
            columns = cells
            continue
        if cells is None or len(cells) != len(columns) or not all(map(_sound, columns, cells)):
            return
        yield dict(zip(columns, cells, strict=True))


def split(raw: bytes) -> list[str] | None:
    """The cells of one line; None if it is no complete line of a CSV file."""
    if not raw.endswith(b"\n"):
        return None
    try:
        return next(csv.reader([raw.decode().removesuffix("\n")], strict=True), None)
    except (UnicodeDecodeError, csv.Error):
        return None


def counted(rounds: Sequence[int]) -> int:
    """How many round numbers count up 1, 2, 3, ... before the first gap."""
    return next((place for place, number in enumerate(rounds) if number != place + 1), len(rounds))


def frame(path: Path, needed: Sequence[str] = ()) -> "pd.DataFrame":
    """The table with its numbers as numbers; empty if there are no lines or no file.

    Raises:
        ConfigError: it is not a table, lacks one of the columns, or a cell does not suit its column.
    """
    import pandas as pd

    content = path.read_bytes() if path.is_file() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        return pd.DataFrame()
    demand_unique_names(shown(path), split(whole[: whole.find(b"\n") + 1]) or [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # lines with more cells than columns
            table = pd.read_csv(io.BytesIO(whole), index_col=False)
    except (
        ValueError,
        OverflowError,
        pd.errors.ParserWarning,
    ) as error:  # the other errors of pandas, and those of decoding, are ValueErrors
        raise ConfigError(f"{shown(path)} cannot be read as a table: {str(error).strip()}; is it damaged?") from error
    for name in needed:
        if name not in table:
            raise ConfigError(f"{shown(path)} must have a column {name}; is this the folder of a run?")
    for name in table:
        _refuse_odd(path, str(name), table[name])
    return table


def _sound(name: str, cell: str) -> bool:
    if name in WHOLE:
        return _WHOLE_CELL.fullmatch(cell) is not None
    return name not in NUMBERS or not cell or _number(cell)


def _number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def _refuse_odd(path: Path, name: str, column: Any) -> None:
    if name in WHOLE and column.dtype.kind != "i" and len(column):
        wanted = "whole numbers"
    elif name in NUMBERS and column.dtype.kind not in "if" and len(column):
        wanted = "numbers"
    else:
        return
    odd = [cell for cell in column if not _sound(name, str(cell))]
    came = f", got {str(odd[0])[:40]!r}" if odd else ""
    raise ConfigError(f"{shown(path)} must have {wanted} in its column {name}{came}; is it damaged?")
