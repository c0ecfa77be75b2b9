"""What a table's rows are to be predicted as: classes, numbers or labels. Legend: S rows, K targets."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from fedexp.data.tables import table as columns
from fedexp.data.tables.category_checks import MAX_CATEGORIES
from fedexp.data.tables.columns import number_columns
from fedexp.data.tables.encoding import Column, standardise_with_moments
from fedexp.parts import ConfigError

if TYPE_CHECKING:
    import pandas as pd

Predicts = Literal["class", "numbers", "labels"]


def read_targets(
    frame: "pd.DataFrame", targets: tuple[str, ...], predicts: Predicts
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Classes int64 `[S]` and their names, or numbers float64 `[S, K]` and the names of their columns."""
    target_columns = [complete_column(frame, name, "dataset.target") for name in targets]
    if predicts == "class":
        names, y = columns.encode_distinct(target_columns[0])
        singletons = int((np.bincount(y) == 1).sum())
        if columns.is_number(target_columns[0]) and 2 * singletons > len(names):
            cure = suggest_numbers(frame, targets, predicts, "choose another dataset.target")
            raise ConfigError(f"column {targets[0]} makes {singletons:,} classes of one row each; {cure}")
        if not 2 <= len(names) <= MAX_CATEGORIES:
            cure = suggest_numbers(frame, targets, predicts, "choose another dataset.target")
            raise ConfigError(
                f"column {targets[0]} must hold 2 to {MAX_CATEGORIES:,} classes, got {len(names):,}; {cure}"
            )
        return y, tuple(names)
    for values in target_columns:
        if not columns.is_number(values):
            kind = "dates" if values.dtype.kind == "M" else "text"
            raise ConfigError(
                f"column {values.name} must hold numbers, since dataset.predicts={predicts}, got {kind}; set "
                "dataset.predicts=class"
            )
    y = np.stack([columns.numbers(values) for values in target_columns], axis=1)
    if predicts == "labels" and not np.isin(y, (0, 1)).all():
        odd = targets[int((~np.isin(y, (0, 1))).any(axis=0).argmax())]
        raise ConfigError(
            f"column {odd} must hold nothing but 0 and 1, since dataset.predicts=labels, but holds other numbers; set "
            "dataset.predicts=numbers loss=mse, or dataset.predicts=class for one column of classes"
        )
    return y, targets


def standard_targets(
    y: np.ndarray, targets: tuple[str, ...], train: np.ndarray, public: "pd.DataFrame | None"
) -> tuple[np.ndarray, tuple[Column, ...]]:
    """Numbers `[S, K]` in deviations of the training rows, or of public ones, and by what they were divided."""
    if public is None:
        y, *moments = standardise_with_moments(y, train)
        return y, number_columns(targets, *moments)
    public_y = np.stack([columns.numbers(complete_column(public, name, "dataset.target")) for name in targets])
    _, mean, std = standardise_with_moments(public_y.T, np.ones(len(public), bool))
    return (y - mean) / std, number_columns(targets, mean, std)


def suggest_numbers(frame: "pd.DataFrame", targets: tuple[str, ...], predicts: Predicts, cure: str) -> str:
    """The advice for unusable classes; where the target holds numbers, it is to predict these instead."""
    target = columns.column(frame, targets[0], "dataset.target")
    if predicts != "class" or not columns.is_number(target):
        return cure
    return f"to predict its numbers set dataset.predicts=numbers loss=mse, else {cure}"


def complete_column(frame: "pd.DataFrame", name: str, key: str) -> "pd.Series":
    """The column that the config key names, unchanged; ConfigError if it lacks a value."""
    return columns.demand_no_missing(columns.column(frame, name, key), "give every row one, or leave such rows out")
