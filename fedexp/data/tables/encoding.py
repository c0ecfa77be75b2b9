"""Columns of a table as numbers, learnt from its training rows alone. Legend: S rows, F columns, K categories."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

SAFE_POWER = 400  # of two: from 2^-400 to 2^400 squares of numbers and of their differences are exact enough


@dataclass(frozen=True)
class Column:
    """How a column of a table becomes numbers: `(value - mean) / std`, or a 0 or 1 for each of its `categories`.

    With `fills_missing` a missing number is the mean and a missing text no category; else values must be there. Numbers
    beyond `bounds` count as these.
    """

    name: str
    mean: float = 0.0
    std: float = 1.0
    categories: tuple[str, ...] | None = None
    fills_missing: bool = False
    bounds: tuple[float, ...] | None = None

    @property
    def width(self) -> int:
        """How many numbers of an example it becomes."""
        return 1 if self.categories is None else len(self.categories)


def standardise(values: np.ndarray, train: np.ndarray) -> np.ndarray:
    """`(values - mean) / std` of every column of `[S, F]`, by mean and deviation of the rows in the mask `train [S]`.

    A column that is constant there is only moved. NaN counts for nothing and becomes 0, which is the mean. Another row
    may be so far off that it becomes infinite. Where numbers lie column by column, each has the bits it
    would have alone.
    """
    return standardise_with_moments(values, train)[0]


def standardise_with_moments(values: np.ndarray, train: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `standardise` gives, and mean and deviation `[F]`; the deviation of a constant column is 1."""
    order = "F" if values.flags.f_contiguous else "C"  # in which NumPy sums
    is_finite = np.isfinite(values[train]).copy(order)
    count = np.maximum(is_finite.sum(axis=0), 1)
    shift = _safe_shift(np.where(is_finite, np.abs(values[train]), 0.0).max(axis=0, initial=0.0))
    with np.errstate(over="ignore"):
        values = np.ldexp(values, shift)
    train_values = np.where(is_finite, values[train], 0.0).copy(order)
    mean = train_values.sum(axis=0) / count
    std = np.sqrt((np.where(is_finite, train_values - mean, 0.0) ** 2).sum(axis=0) / count)
    std[(train_values == train_values.max(axis=0, initial=-np.inf, where=is_finite)).all(axis=0, where=is_finite)] = (
        0  # the mean was rounded
    )
    std = np.where(std > 0, std, 1.0)
    with np.errstate(over="ignore"):
        z_scores = (values - mean) / std
        return np.where(np.isnan(z_scores), 0.0, z_scores), np.ldexp(mean, -shift), np.ldexp(std, -shift)


def _safe_shift(largest: np.ndarray) -> np.ndarray:
    """The powers of two `[F]` by which columns are scaled if the square of their `largest [F]` number overflows.

    A power of two rounds nothing, and is nothing to numbers that are standardised.
    """
    power = np.frexp(largest)[1]
    return np.where(np.abs(power) > SAFE_POWER, -power, 0)


def distinct_texts(values: np.ndarray, train: np.ndarray) -> np.ndarray:
    """The distinct non-empty texts `[K]`, sorted, of the training rows of `values [S]`."""
    texts = np.unique(values[train])
    return texts[texts != ""]


def match_spelling(values: np.ndarray, names: Collection[str]) -> np.ndarray:
    """The texts of `values [S]`, with or without ".0" as in `names`: beside a missing value pandas has 2 as 2.0."""
    spellings = {name.removesuffix(".0") if name.endswith(".0") else f"{name}.0": name for name in names}
    name_by_text = {text: name for text, name in spellings.items() if text not in names}
    return np.array([name_by_text.get(value, value) for value in values.tolist()], dtype=str)


def one_hot(values: np.ndarray, names: np.ndarray) -> np.ndarray:
    """`[S, K]` with a 1 where a text of `values [S]` is that of `names [K]`; all zeros where it is none of them."""
    return (values[:, None] == names[None, :]).astype(np.float32)


def held_out_mask(groups: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """The mask `[S]` of test rows: of each of the `groups [S]` that fraction of its rows, rounded down."""
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    _, first, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(first, sizes)
    mask = np.zeros(len(groups), bool)
    mask[order] = np.floor((rank + 1) * fraction + 1e-9) > np.floor(rank * fraction + 1e-9)
    return mask
