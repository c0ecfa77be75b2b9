"""Tables in CSV or Parquet files, read by pandas; complaints name the column and say how many rows are concerned."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fedexp.core.errors import ConfigError, did_you_mean, first_line
from fedexp.files.user_csv import demand_unique_names, read_header, separator_name

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".csv", ".parquet")
CELLS = 2**20  # of columns that are encoded together
NUMERIC = "biuf"  # kinds of NumPy's types
NESTED = (list, tuple, dict, set, np.ndarray)


def read(path: Path, texts: Sequence[str] = ()) -> "pd.DataFrame":
    """The table of a file; in these columns numbers are `texts`, too, of a CSV file as they are written.

    Raises:
        ConfigError: its name does not say which kind it is, it cannot be read, two columns have one name, or it has no
            rows.
    """
    import pandas as pd

    if path.suffix not in ENDINGS:
        raise ConfigError(f"a table must end in {' or '.join(ENDINGS)}, got {path.name}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # lines with more cells than the header
            if path.suffix == ".csv":
                _demand_columns(path)
                kinds: Any = dict.fromkeys(texts, str)
                frame = pd.read_csv(
                    path, index_col=False, low_memory=False, dtype=kinds
                )  # a column has one type in all its rows
            else:
                frame = _with_plain_numbers(pd.read_parquet(path))
                frame = frame.astype({name: object for name in texts if name in frame.columns})
                _demand_whole_texts(frame)
    except ConfigError:
        raise
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ConfigError(f"{path} must be text in UTF-8, but holds the byte 0x{byte:02x}; save it as UTF-8") from None
    except ImportError:
        raise ConfigError(f"{path} needs a reader of Parquet files; pip install pyarrow, or give a .csv file") from None
    except Exception as error:  # pandas', pyarrow's and the operating system's, of many kinds
        raise ConfigError(f"{path} cannot be read as a table: {first_line(error)}") from None
    if not len(frame):
        raise ConfigError(f"{path} must hold at least one row below its header, got none")
    frame = frame.rename(columns=str)
    demand_unique_names(path, list(frame.columns))
    return frame


def _demand_columns(path: Path) -> None:
    """Raises ConfigError unless the header of a CSV file has commas, and a name of its own for each column."""
    header = read_header(path)
    if len(header) == 1 and (between := separator_name(header[0])):
        raise ConfigError(f"{path} must have commas between its cells, got {between}; save it with commas")
    demand_unique_names(path, header)


def _demand_whole_texts(frame: "pd.DataFrame") -> None:
    """Raises what PyArrow says of texts that are no UTF-8: it decodes the cells of a file when they are used."""
    for _, values in frame.items():
        if values.dtype == "string":
            values.astype(object).to_numpy()


def _with_plain_numbers(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The same table with floats in place of decimal numbers, which pandas holds like texts."""
    import pandas as pd

    kinds = {name: pd.api.types.infer_dtype(values) for name, values in frame.items() if values.dtype == object}
    return frame.astype({name: float for name, kind in kinds.items() if kind == "decimal"})


def column(frame: "pd.DataFrame", name: str, key: str) -> "pd.Series":
    """One column; `key` is the config key that names it."""
    if name not in frame.columns:
        raise ConfigError(
            f"{key} must name a column of the table, got {name}; {did_you_mean(name, list(frame.columns))}"
        )
    return cast("pd.Series", frame[name])


def blocks_of_numbers(frame: "pd.DataFrame", names: Sequence[str]) -> Iterator["pd.DataFrame"]:
    """Those of the named columns that hold numbers, in tables of up to `CELLS` cells."""
    most = max(1, CELLS // len(frame))
    holds = dict(zip(frame.columns, (dtype.kind in NUMERIC for dtype in frame.dtypes), strict=True))
    numeric = [name for name in names if holds[name]]
    for first in range(0, len(numeric), most):
        yield cast("pd.DataFrame", frame[numeric[first : first + most]])


def demand_no_missing(values: "pd.Series", cure: str) -> "pd.Series":
    """The column unchanged; ConfigError if a value is missing."""
    absent = int(values.isna().sum())
    if absent:
        raise ConfigError(f"column {values.name} lacks a value in {absent:,} of {len(values):,} rows; {cure}")
    return values


def is_number(values: "pd.Series") -> bool:
    """Whether a column holds numbers, or true and false."""
    return values.dtype.kind in NUMERIC


def numbers(values: "pd.Series") -> np.ndarray:
    """A column of numbers as float64 `[S]`, NaN where one is missing; ConfigError if one is infinite."""
    array = values.to_numpy(dtype=np.float64, na_value=np.nan)
    endless = int(np.isinf(array).sum())
    if endless:
        raise ConfigError(f"column {values.name} must be finite, but is infinite in {endless:,} of {len(array):,} rows")
    return array


def texts(values: "pd.Series") -> np.ndarray:
    """A column of texts as an array of str `[S]`, empty where one is missing.

    Raises:
        ConfigError: one of them is a list or the like, or NumPy would cut one.
    """
    cells = values.astype(object).to_numpy()
    if any(isinstance(cell, NESTED) for cell in cells):
        raise ConfigError(
            f"column {values.name} must hold one number or text in each row, got lists or dicts; give each entry a "
            f"column of its own, or set dataset.ignore=[{values.name}]"
        )
    strings = ["" if absent else str(cell) for cell, absent in zip(cells, values.isna().to_numpy(), strict=True)]
    if any("\0" in text for text in strings):
        raise ConfigError(f"column {values.name} holds a NUL character, which no text has; save the file as UTF-8")
    return np.array(strings, dtype=str)


def to_float32(values: np.ndarray, name: str, cure: str) -> np.ndarray:
    """Numbers (any shape) as float32; ConfigError if one exceeds its range."""
    with np.errstate(over="ignore"):
        array = values.astype(np.float32)
    if beyond := int((~np.isfinite(array)).sum()):
        raise ConfigError(
            f"column {name} must stay below 3e38, which is all that float32 holds, but {beyond:,} of "
            f"{array.size:,} numbers do not; {cure}"
        )
    return array


def encode_distinct(values: "pd.Series") -> tuple[list[str], np.ndarray]:
    """The names of the distinct values in ascending order, and which of them each row has, int64 `[S]`.

    Numbers are put in order as numbers, everything else as text. A number has 15 digits in its name, or all have as
    many as two of them need to differ.
    """
    if values.dtype.kind in "iu":  # as they are: a float would take some large ones for the same
        unique_values, codes = np.unique(values.to_numpy(dtype=f"{values.dtype.kind}8"), return_inverse=True)
        return [str(value) for value in unique_values.tolist()], codes.astype(np.int64)
    unique_values, codes = np.unique(numbers(values) if is_number(values) else texts(values), return_inverse=True)
    names = [str(value) for value in unique_values.tolist()]
    if is_number(values):
        short_names = [f"{value:.15g}" for value in unique_values.tolist()]
        names = short_names if len({*short_names}) == len(names) else names
    return names, codes.astype(np.int64)
