"""Cells that a model is not given as they are: missing ones, texts unknown to training, numbers out of their range."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from fedexp.core.join_first import join_first
from fedexp.data.tables import table
from fedexp.data.tables.encoding import Column, match_spelling

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMES = 5
MISSING, UNKNOWN, BEYOND = "missing", "unknown to training", "out of range"
FAR = 10  # standard deviations from the mean, where training is likely to have seen no number


def describe_replaced_cells(frame: "pd.DataFrame", columns: Sequence[Column]) -> str:
    """How many rows of a table have such cells, and in which columns, in one line; empty if none has.

    The table is one that `encode_columns` takes.
    """
    is_replaced = np.zeros(len(frame), bool)
    counted: dict[str, list[str]] = {}
    for column in columns:
        for kind, mask, example in _replaced_cells(cast("pd.Series", frame[column.name]), column):
            is_replaced |= mask
            counted.setdefault(kind, []).append(f"{column.name} ({int(mask.sum()):,}{example})")
    if not counted:
        return ""
    listed = "; ".join(
        f"{kind} in {join_first(counted[kind], MOST_NAMES)}" for kind in (MISSING, UNKNOWN, BEYOND) if kind in counted
    )
    return (
        f"{int(is_replaced.sum()):,} of {len(frame):,} rows have cells that the model cannot take as they are: {listed}"
    )


def describe_far_numbers(frame: "pd.DataFrame", columns: Sequence[Column]) -> str:
    """Which columns have numbers that are far from all that training had, in one line; empty if none has."""
    listed = []
    for column in columns:
        if column.categories is None and column.bounds is None:
            numbers = table.numbers(cast("pd.Series", frame[column.name]).astype(float))
            far = np.abs(numbers - column.mean) > FAR * column.std
            if far.any():
                listed.append(f"{column.name} ({int(far.sum()):,}, e.g. {numbers[far][0]:g}; mean {column.mean:g})")
    return (
        f"numbers are far from those of training, so the answers there mean little: {join_first(listed, MOST_NAMES)}"
        if listed
        else ""
    )


def _replaced_cells(values: "pd.Series", column: Column) -> Iterator[tuple[str, np.ndarray, str]]:
    """Each kind of such cells that a column has, with their mask `[S]` and an example."""
    if column.categories is None:
        numbers = table.numbers(values.astype(float))
        missing, unknown, beyond = np.isnan(numbers), np.zeros(len(values), bool), np.zeros(len(values), bool)
        if column.bounds is not None:
            beyond = (numbers < column.bounds[0]) | (numbers > column.bounds[1])
        example = ""
    else:
        texts = match_spelling(table.texts(values), column.categories)
        missing, beyond = texts == "", np.zeros(len(values), bool)
        unknown = ~missing & ~np.isin(texts, column.categories)
        example = f", e.g. {' '.join(str(texts[unknown][0]).split())[:40]}" if unknown.any() else ""
    for kind, mask, text in ((MISSING, missing, ""), (UNKNOWN, unknown, example), (BEYOND, beyond, "")):
        if mask.any():
            yield kind, mask, text
