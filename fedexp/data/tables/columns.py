"""Columns of a table as numbers: learnt from rows, or given; and other rows encoded in the same way.

Legend: S rows, F numbers that the columns become.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.data.tables import table
from fedexp.data.tables.category_checks import demand_categories
from fedexp.data.tables.encoding import Column, distinct_texts, match_spelling, one_hot, standardise_with_moments

if TYPE_CHECKING:
    import pandas as pd

EncodedColumn = tuple[np.ndarray, Column]  # float32 [S, width], and how it became that


def fit_columns(
    frame: "pd.DataFrame", names: Sequence[str], train: np.ndarray, *, fill: bool, categories: Collection[str] = ()
) -> tuple[np.ndarray, tuple[Column, ...]]:
    """The named columns as float32 `[S, F]`, by the rows in the mask `train [S]`, and how they became that.

    Texts of the columns `categories` are categories without doubt.

    Raises:
        ConfigError: a column holds what cannot be encoded, or texts that are hardly categories, or lacks values and
            `fill` is not set.
    """
    encoded: dict[str, EncodedColumn] = {}
    for block in table.blocks_of_numbers(frame, names):
        encoded |= _fit_numbers(block, train, fill=fill)
    pieces = [
        encoded[name]
        if name in encoded
        else _fit_column(table.column(frame, name, ""), train, fill=fill, declared=name in categories)
        for name in names
    ]
    return _join([numbers for numbers, _ in pieces], len(frame)), tuple(column for _, column in pieces)


def encode_columns(frame: "pd.DataFrame", columns: Sequence[Column]) -> np.ndarray:
    """These columns of a table as float32 `[S, F]`.

    Raises:
        ConfigError: one is missing, lacks values, or holds text where there must be numbers.
    """
    return _join([_encode(column, frame) for column in columns], len(frame))


def columns_in_ranges(ranges: Mapping[str, Any], names: Sequence[str], *, fill: bool) -> tuple[Column, ...]:
    """The named columns, clipped to ranges that were given and scaled to [-1, 1], or with given categories.

    Raises:
        ConfigError: a column has no range, or it is neither two rising numbers nor a list of texts.
    """
    if odd := [name for name in ranges if not isinstance(name, str)]:
        raise ConfigError(f"dataset.ranges must have names of columns as keys, got {odd[0]!r}; put the name in quotes")
    if missing := [name for name in names if name not in ranges]:
        raise ConfigError(
            f"dataset.ranges must hold every column, but lacks {missing[0]}; give [LOW,HIGH] or its categories, or set "
            f"dataset.ignore=[{missing[0]}]"
        )
    if unknown := [name for name in ranges if name not in names]:
        raise ConfigError(f"dataset.ranges must name columns that are predicted from, got {unknown[0]}; leave it out")
    return tuple(_column_in_range(name, ranges[name], fill=fill) for name in names)


def number_columns(
    names: Sequence[str], mean: np.ndarray, std: np.ndarray, *, fill: bool = False
) -> tuple[Column, ...]:
    """Columns of numbers that were standardised by their `mean [F]` and `std [F]`."""
    return tuple(Column(*entries, None, fill) for entries in zip(names, mean.tolist(), std.tolist(), strict=True))


def _join(pieces: list[np.ndarray], rows: int) -> np.ndarray:
    return np.concatenate(pieces, axis=1) if pieces else np.zeros((rows, 0), np.float32)


def has_categories(given_range: Any) -> bool:
    """Whether a given range is a list of categories, each once, and not one of numbers."""
    is_list = isinstance(given_range, list | tuple) and len(given_range) > 0
    return is_list and all(isinstance(entry, str) for entry in given_range) and len({*given_range}) == len(given_range)


def _column_in_range(name: str, given_range: Any, *, fill: bool) -> Column:
    entries = tuple(given_range) if isinstance(given_range, list | tuple) else ()
    if has_categories(given_range):
        return Column(name, 0.0, 1.0, entries, fill)
    if len(entries) == 2 and all(type(entry) in (int, float) and math.isfinite(entry) for entry in entries):
        low, high = map(float, entries)
        if low < high:
            return Column(name, (low + high) / 2, (high - low) / 2, None, fill, (low, high))
    raise ConfigError(
        f"dataset.ranges.{name} must be [LOW,HIGH], two rising numbers, or a list of texts, got {given_range}"
    )


def _fit_numbers(block: "pd.DataFrame", train: np.ndarray, *, fill: bool) -> dict[str, EncodedColumn]:
    """Columns of numbers as float32 `[S, 1]` each, all at once; none where one of them will not do."""
    values = block.to_numpy(np.float64, na_value=np.nan)
    if np.isinf(values).any() or (not fill and np.isnan(values).any()):
        return {}
    with np.errstate(over="ignore"):
        z_scores, *moments = standardise_with_moments(np.asfortranarray(values), train)
        encoded = z_scores.astype(np.float32)
    if not np.isfinite(encoded).all():
        return {}
    described = number_columns(list(block.columns), *moments, fill=fill)
    return {column.name: (entries, column) for entries, column in zip(encoded.T[..., None], described, strict=True)}


def _fit_column(values: "pd.Series", train: np.ndarray, *, fill: bool, declared: bool) -> EncodedColumn:
    """One column as float32 `[S, ...]`."""
    if not fill:
        table.demand_no_missing(values, f"set dataset.missing=fill or dataset.ignore=[{values.name}]")
    if not declared:
        values = _with_large_numbers(values)
    if table.is_number(values):
        entries, *moments = standardise_with_moments(table.numbers(values)[:, None], train)
        description = f"{values.name}, in deviations from the training mean,"
        numbers = table.to_float32(entries, description, f"correct them or set dataset.ignore=[{values.name}]")
        return numbers, number_columns([str(values.name)], *moments, fill=fill)[0]
    if values.dtype.kind not in "OUTS" and str(values.dtype) != "category":
        raise ConfigError(
            f"column {values.name} must hold numbers or text, got {values.dtype}; set dataset.ignore=[{values.name}]"
        )
    entries = table.texts(values)
    names = distinct_texts(entries, train)
    demand_categories(str(values.name), entries, names, declared=declared)
    return one_hot(entries, names), Column(str(values.name), 0.0, 1.0, tuple(names.tolist()), fill)


def _with_large_numbers(values: "pd.Series") -> "pd.Series":
    """A column of numbers of which one does not fit in 64 bits, which pandas has as texts, as floats; others as is."""
    import pandas as pd

    if table.is_number(values):
        return values
    try:
        converted = cast("pd.Series", pd.to_numeric(values)).astype(float)
    except (ValueError, TypeError):
        return values
    return converted if converted.abs().max() >= 2**63 else values


def _as_numbers(values: "pd.Series", name: str) -> "pd.Series":
    """A column whose cells are all numbers, though pandas has them as texts, as it has whole ones of 20 digits."""
    import pandas as pd

    converted = cast("pd.Series", pd.to_numeric(values, errors="coerce")).astype(float)
    is_text = converted.isna().to_numpy() & ~values.isna().to_numpy()
    if is_text.any():
        text = " ".join(str(values.to_numpy()[is_text][0]).split())[:40]
        raise ConfigError(f"column {name} must hold numbers, but holds text: {text!r}; correct the rows")
    return converted


def _encode(column: Column, frame: "pd.DataFrame") -> np.ndarray:
    """One column of a table as float32 `[S, width]`."""
    if column.name not in frame.columns:
        raise ConfigError(f"the rows must have the column {column.name}, but it is missing; add it")
    values = cast("pd.Series", frame[column.name])
    if not column.fills_missing:
        table.demand_no_missing(values, "fill in the rows, or train with dataset.missing=fill")
    if column.categories is not None:
        names = np.array(column.categories, dtype=str) if column.categories else np.zeros(0, dtype="U1")
        return one_hot(match_spelling(table.texts(values), column.categories), names)
    if values.dtype == object and set(values.dropna()) <= {True, False}:
        values = values.astype(float)
    if not table.is_number(values) and not values.isna().all():
        values = _as_numbers(values, column.name)
    numbers = table.numbers(values.astype(float))
    if column.bounds is not None:
        numbers = np.clip(numbers, column.bounds[0], column.bounds[1])
    with np.errstate(over="ignore", invalid="ignore"):
        z_scores = (numbers - column.mean) / column.std
    entries = np.where(np.isnan(z_scores), 0.0, z_scores)[:, None]
    return table.to_float32(entries, f"{column.name}, in deviations from its mean,", "correct the rows")
