"""The one reader of a run's tables: what a column must hold follows from its name, and every file is checked.

`read_lines` reads a table as texts and stops at the first invalid line: for code that goes on from there, or compares
cell by cell. `read_frame` reads the whole table or raises. Both leave out a last line without a line break: the run
that wrote it may have been killed, or may still be running.
"""

import csv
import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.untrusted import read_regular
from fedexp.files.user_csv import demand_unique_names

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

Line = dict[str, str]  # a table's cells by column
LARGEST = 1_000_000_000  # bytes of a table
LARGEST_NUMBER = 1e100  # that a run writes: sums and squares of such numbers do not overflow

INTEGER_COLUMNS = ("round", "client", "cluster", "participants", "examples", "present")
NUMERIC_COLUMNS = (
    *("test_loss", "test_accuracy", "validation_loss", "validation_accuracy", "train_loss"),
    *("mb_down", "mb_up", "select_s", "train_s", "aggregate_s", "evaluate_s", "host_s", "sim_s"),
    *("loss_before", "loss_after", "epsilon_rdp", "epsilon_pld", "distance"),
    *("global", "inside", "personal", "mean", "from_s", "to_s"),
)
ACCURACIES = ("test_accuracy", "validation_accuracy")  # from 0 to 1
FINITE = (*ACCURACIES, "global", "inside", "personal", "mean")  # the last four are scores of client_scores.csv
ROUNDING = 1e-6
_INTEGER_CELL = re.compile(r"-?\d{1,15}")


def has_rounds(folder: Path) -> bool:
    """Whether a round of a run is recorded here."""
    table = folder / "metrics.csv"
    return (folder / "state.pt").exists() or (table.exists() and table.stat().st_size > 0)


def read_lines(path: Path, needed: Sequence[str]) -> Iterator[Line]:
    """Yields the valid lines of a table that has these columns and starts with the first; nothing of other files.

    Raises:
        ConfigError: it has more than `LARGEST` bytes.
    """
    columns: list[str] | None = None
    for raw in _complete_lines(path).splitlines(keepends=True):
        cells = split(raw)
        if columns is None:
            if not cells or cells[0] != needed[0] or not set(needed) <= set(cells) or len(set(cells)) < len(cells):
                return
            columns = cells
            continue
        if cells is None or len(cells) != len(columns) or not all(map(_is_valid, columns, cells)):
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


def count_consecutive(rounds: Sequence[int]) -> int:
    """How many round numbers count up 1, 2, 3, ... before the first gap."""
    return next((index for index, number in enumerate(rounds) if number != index + 1), len(rounds))


def has_new_model(path: Path) -> bool:
    """Whether some round of this metrics.csv has changed the model."""
    metrics = read_frame(path)
    return len(metrics) > 0 and not all_dropped(metrics)


def all_dropped(metrics: "pd.DataFrame") -> bool:
    """Whether, as metrics.csv says, every update of every round was dropped because it was not finite."""
    dropped, participants = numbers(metrics, "aggregator.dropped"), numbers(metrics, "participants")
    return bool(len(metrics) and (participants > 0).all() and (dropped >= participants).all())


def read_frame(path: Path, needed: Sequence[str] = ()) -> "pd.DataFrame":
    """The table with its numbers as numbers; empty if there are no lines or no file.

    Raises:
        ConfigError: it is not a table, lacks one of the columns, a cell does not suit its column, or it is too large.
    """
    import pandas as pd

    complete_lines = _complete_lines(path)
    if not complete_lines:
        return pd.DataFrame()
    demand_unique_names(display_path(path), split(complete_lines[: complete_lines.find(b"\n") + 1]) or [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # lines with more cells than columns
            table = pd.read_csv(io.BytesIO(complete_lines), index_col=False)
    except (
        ValueError,
        OverflowError,
        pd.errors.ParserWarning,
    ) as error:  # the other errors of pandas, and those of decoding, are ValueErrors
        raise ConfigError(
            f"{display_path(path)} cannot be read as a table: {str(error).strip()}; is it damaged?"
        ) from error
    for name in needed:
        if name not in table:
            raise ConfigError(f"{display_path(path)} must have a column {name}; is this the folder of a run?")
    for name in table:
        _refuse_invalid(path, str(name), table[name], complete_lines)
    return table


def numbers(table: "pd.DataFrame", name: str) -> "np.ndarray":
    """A column of a table as numbers, float64 `[rows]`; NaN for every cell that does not exist."""
    import numpy as np
    import pandas as pd

    if name not in table:
        return np.full(len(table), np.nan)
    return np.asarray(pd.to_numeric(table[name], errors="coerce"), dtype=np.float64)


def partial_line(path: Path) -> str:
    """What stands behind the last line break, which the readers here leave out; empty if nothing does."""
    content = read_regular(path, LARGEST) if path.is_file() else b""
    return content[content.rfind(b"\n") + 1 :].decode(errors="replace")


def _complete_lines(path: Path) -> bytes:
    """The content up to the last line break; empty if there is no file."""
    if not path.is_file():
        return b""
    content = read_regular(path, LARGEST)
    return content[: content.rfind(b"\n") + 1]


def _is_valid(name: str, cell: str) -> bool:
    if name in INTEGER_COLUMNS:
        return is_integer(cell)
    return name not in NUMERIC_COLUMNS or not cell or _is_number(cell, name)


def is_integer(cell: str) -> bool:
    """Whether a cell is a whole number, as columns of whole numbers must have it."""
    return _INTEGER_CELL.fullmatch(cell) is not None


def _is_number(cell: object, name: str) -> bool:
    try:
        return not _is_too_large(abs(float(str(cell))), name)
    except ValueError:
        return False


def _is_too_large(size: Any, name: str) -> Any:
    """Whether numbers of such a size, one or a column, are too large: a loss may be infinite, a score may not."""
    return (size > _limit(name)) & ((size < math.inf) | (name in FINITE))


def _limit(name: str) -> float:
    """How large a finite number of a column may be: a simulated clock goes as far as the fleet of a config says."""
    if name in ACCURACIES:
        return 1 + ROUNDING
    return math.inf if name == "sim_s" else LARGEST_NUMBER


def _refuse_invalid(path: Path, name: str, column: Any, content: bytes) -> None:
    """Raises ConfigError if a column holds what it must not; `content` is that of the file, where the cells stand."""
    if name in INTEGER_COLUMNS and column.dtype.kind != "i" and len(column):
        wanted = "whole numbers"
    elif name in NUMERIC_COLUMNS and column.dtype.kind not in "if" and len(column):
        wanted = "numbers"
    elif name in NUMERIC_COLUMNS and len(column) and _is_too_large(column.abs(), name).any():
        wanted = f"numbers up to {_limit(name):g}"
    else:
        return
    import pandas as pd

    cells = pd.read_csv(io.BytesIO(content), index_col=False, dtype=str, keep_default_na=False)[name]
    invalid = [cell for cell in cells if not _is_valid(name, cell)]
    example = f", got {invalid[0][:40]!r}" if invalid else ""
    raise ConfigError(f"{display_path(path)} must have {wanted} in its column {name}{example}; is it damaged?")
