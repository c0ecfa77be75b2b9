"""Texts and numbers of a table that are probably no categories: names of people, and numbers with a damaged cell.

Each text of such a column would be an input of the model, and all of them would leave with an export. Who means it
names the column in `dataset.categories`.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.data.tables import table

if TYPE_CHECKING:
    import pandas as pd

MAX_CATEGORIES = 1000  # of a column, or classes: with more it is hardly one
FEW = 10  # texts, or classes with numbers as names, are never doubted


def demand_categories(column: str, texts: np.ndarray, names: np.ndarray, *, declared: bool = False) -> None:
    """Raises ConfigError where the `texts [S]` of a column, `names [K]` in the training rows, are hardly categories.

    There are more than 1,000; or, where the user has not declared that they are categories, of more than ten distinct
    texts most are numbers, or there are more than half as many as rows.
    """
    ignore = f"set dataset.ignore=[{column}]"
    if len(names) > MAX_CATEGORIES:
        raise ConfigError(
            f"column {column} must hold at most {MAX_CATEGORIES:,} categories, got {len(names):,}; {ignore}"
        )
    distinct = [str(text) for text in np.unique(texts[texts != ""])]
    if declared or len(distinct) <= FEW:
        return
    odd = [text for text in distinct if not _is_number(text)]
    mean_it = f"or, if these are categories, dataset.categories=[{column}]"
    if odd and all(_is_number(text.replace(",", ".")) for text in odd):
        raise ConfigError(
            f"column {column} must have a point in its decimal numbers, got {odd[0]!r}; write "
            f"{odd[0].replace(',', '.')}, {mean_it}"
        )
    if 2 * len(odd) < len(distinct):
        raise ConfigError(
            f"column {column} must hold numbers or categories, but among its {len(distinct) - len(odd):,} different "
            f"numbers stands {', '.join(map(repr, odd[:3]))}; correct such cells, leave them empty with "
            f"dataset.missing=fill, {mean_it}"
        )
    if 2 * len(distinct) > (texts != "").sum():
        raise ConfigError(
            f"column {column} has another text in most rows ({len(distinct):,} texts, such as {distinct[0]!r}), like a "
            f"name, and would become as many inputs; {ignore}, {mean_it}"
        )


def describe_doubts(frame: "pd.DataFrame", inputs: Sequence[str], target: str | None) -> Iterator[str]:
    """A sentence for each input with another whole number in every row, and where many numbers became classes.

    `target` is the column of the classes; None where no classes are predicted.
    """
    for name in inputs:
        values = table.column(frame, name, "")
        if values.dtype.kind in "iu" and len(values) > FEW and values.is_unique:
            yield f"column {name} has another whole number in every row, like an id; leave it out by dataset.ignore"
    if target is None or not table.is_number(values := table.column(frame, target, "")):
        return
    if (count := values.nunique()) > FEW:
        yield (
            f"each of the {count:,} numbers of column {target} is a class; to predict the numbers set "
            "dataset.predicts=numbers loss=mse"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
