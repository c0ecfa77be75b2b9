"""A user's own table: one row an example, in a CSV or Parquet file.

Columns of numbers are standardised by mean and deviation of the training rows. Columns of text become one column for
each category of the training rows; a row with another category has 0 in all of them. One column is the target, or
several. A column `client` says whose each row is (`federation=subject`), a column `split` which rows are for testing:
its values are `train` and `test`. Without it, `test_fraction` of the rows (of each class) are drawn, the same in every
run whatever its seed.

Targets are the classes in ascending order, numbers, or labels (columns of 0 and 1). Numbers are standardised too, so
errors are in deviations of the training targets; `target_scale: raw` leaves them. Legend: S rows, K targets.
"""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from fedexp.data import table as columns
from fedexp.data.encoding import categories, held_out_mask, one_hot, standardise
from fedexp.parts import ConfigError, Data, Dataset, Facts, Range, find_user_file, split_by_mask, stamp, stream

if TYPE_CHECKING:
    import pandas as pd

MAX_CATEGORIES = 1000  # categories of a column, or classes: with more it is hardly one


class OwnTable(Dataset):
    """`missing=fill`: a missing number is the training mean, a missing text no category."""

    file: Path
    target: str | tuple[str, ...]
    predicts: Literal["class", "numbers", "labels"] = "class"
    client: str | None = None
    split: str | None = None
    test_fraction: Annotated[float, Range(0, 1, low_open=True, high_open=True)] = 0.2
    ignore: tuple[str, ...] = ()
    missing: Literal["refuse", "fill"] = "refuse"
    target_scale: Literal["standard", "raw"] = "standard"

    def check(self) -> None:
        if not self.targets or (self.predicts == "class" and len(self.targets) > 1):
            raise ConfigError(
                f"OwnTable.target must be one column where classes are predicted, got {list(self.targets)}; set "
                "dataset.predicts=numbers or dataset.predicts=labels"
            )
        for key, names in (("target", self.targets), ("ignore", self.ignore)):
            if len(set(names)) < len(names):
                raise ConfigError(f"OwnTable.{key} must name each column once, got {list(names)}; leave the rest out")

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns that are to be predicted."""
        return (self.target,) if isinstance(self.target, str) else self.target

    @property
    def subject_option(self) -> str:
        return "" if self.client is None else f"dataset.client={self.client}"

    def facts(self, directory: Path) -> Facts:
        data = self.load(directory, 0)
        train = data.train
        subjects = None if train.subject is None else len(train.subject.unique())
        return Facts((train.x.shape[1],), len(data.class_names), len(train.x), subjects, self.predicts)

    def require(self, directory: Path) -> None:
        self.load(directory, 0)

    def verify(self, directory: Path) -> list[str]:
        facts, file = self.facts(directory), self._file(directory)
        summary = f"{facts.train_size:,} training rows of {facts.shape[0]} numbers, {facts.classes} {self._kind}"
        return [f"{file} holds {summary} (your own file: there is no checksum)"]

    def download(self, directory: Path) -> None:
        raise ConfigError("dataset=table has no source to download from: it reads your own file; set dataset.file=...")

    def load(self, directory: Path, seed: int) -> Data:
        return _parse(self, stamp(self._file(directory)))

    @property
    def _kind(self) -> str:
        return {"class": "classes", "numbers": "numbers to predict", "labels": "labels"}[self.predicts]

    def _file(self, directory: Path) -> Path:
        return find_user_file(self.file, directory, "dataset.file", ".csv or .parquet")


@lru_cache(maxsize=1)
def _parse(settings: OwnTable, source: tuple[tuple[str, int, int], ...]) -> Data:
    """Reads the file once for facts and examples, as long as its size and time stay."""
    frame = columns.read(Path(source[0][0]))
    y, names = _targets(frame, settings)
    groups = y if settings.predicts == "class" else np.zeros(len(frame), np.int64)
    test = _test_rows(frame, settings, groups)
    if settings.predicts == "class" and (unseen := sorted(set(range(len(names))) - set(y[~test].tolist()))):
        cure = _suggest_numbers(frame, settings, "call some of them train, or leave them out")
        raise ConfigError(
            f"column {settings.targets[0]} must hold every class in the training rows, but {names[unseen[0]]} "
            f"is in test rows alone; {cure}"
        )
    if settings.predicts == "numbers" and settings.target_scale == "standard":
        y = standardise(y, ~test)
    if settings.predicts != "class":
        y = columns.to_float32(y, " or ".join(settings.targets), "correct them")
    client = client_names = None
    if settings.client is not None:
        client_names, client = columns.encode_distinct(_complete_column(frame, settings.client, "dataset.client"))
    train, test_examples = split_by_mask(test, _examples(frame, settings, ~test), y, client)
    return Data(train, test_examples, names, subject_names=tuple(client_names) if client_names else None)


def _examples(frame: "pd.DataFrame", settings: OwnTable, train: np.ndarray) -> np.ndarray:
    """The columns that are neither targets nor named otherwise, as float32 `[S, F]`."""
    excluded = {*settings.targets, settings.client, settings.split, *settings.ignore}
    for name in settings.ignore:
        columns.column(frame, name, "dataset.ignore")
    features = [name for name in frame.columns if name not in excluded]
    encoded: dict[str, np.ndarray] = {}
    for block in columns.blocks_of_numbers(frame, features):
        encoded |= _encode_numbers(block, settings, train)
    pieces = [
        encoded[name] if name in encoded else _encode_column(columns.column(frame, name, ""), settings, train)
        for name in features
    ]
    if not sum(piece.shape[1] for piece in pieces):
        raise ConfigError(
            f"the table must have a column to predict {', '.join(settings.targets)} from, but has no other"
        )
    return np.concatenate(pieces, axis=1)


def _encode_numbers(block: "pd.DataFrame", settings: OwnTable, train: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of numbers as float32 `[S, 1]` each, all at once; none where one of them will not do."""
    values = block.to_numpy(np.float64, na_value=np.nan)
    if np.isinf(values).any() or (settings.missing == "refuse" and np.isnan(values).any()):
        return {}
    with np.errstate(over="ignore"):
        encoded = standardise(np.asfortranarray(values), train).astype(np.float32)
    return dict(zip(block.columns, encoded.T[..., None], strict=True)) if np.isfinite(encoded).all() else {}


def _encode_column(values: "pd.Series", settings: OwnTable, train: np.ndarray) -> np.ndarray:
    """One column as float32 `[S, ...]`."""
    if settings.missing == "refuse":
        columns.demand_no_missing(values, f"set dataset.missing=fill or dataset.ignore=[{values.name}]")
    if columns.is_number(values):
        entries = standardise(columns.numbers(values)[:, None], train)
        description = f"{values.name}, in deviations from the training mean,"
        return columns.to_float32(entries, description, f"correct them or set dataset.ignore=[{values.name}]")
    if values.dtype.kind not in "OUTS" and str(values.dtype) != "category":
        raise ConfigError(
            f"column {values.name} must hold numbers or text, got {values.dtype}; set dataset.ignore=[{values.name}]"
        )
    entries = columns.texts(values)
    names = categories(entries, train)
    if len(names) > MAX_CATEGORIES:
        raise ConfigError(
            f"column {values.name} must hold at most {MAX_CATEGORIES:,} categories, got {len(names):,}; set "
            f"dataset.ignore=[{values.name}]"
        )
    return one_hot(entries, names)


def _targets(frame: "pd.DataFrame", settings: OwnTable) -> tuple[np.ndarray, tuple[str, ...]]:
    """Classes int64 `[S]` and their names, or numbers float64 `[S, K]` and the names of their columns."""
    target_columns = [_complete_column(frame, name, "dataset.target") for name in settings.targets]
    if settings.predicts == "class":
        names, y = columns.encode_distinct(target_columns[0])
        singletons = int((np.bincount(y) == 1).sum())
        if columns.is_number(target_columns[0]) and 2 * singletons > len(names):
            cure = _suggest_numbers(frame, settings, "choose another dataset.target")
            raise ConfigError(f"column {settings.targets[0]} makes {singletons:,} classes of one row each; {cure}")
        if not 2 <= len(names) <= MAX_CATEGORIES:
            cure = _suggest_numbers(frame, settings, "choose another dataset.target")
            raise ConfigError(
                f"column {settings.targets[0]} must hold 2 to {MAX_CATEGORIES:,} classes, got {len(names):,}; {cure}"
            )
        return y, tuple(names)
    for values in target_columns:
        if not columns.is_number(values):
            kind = "dates" if values.dtype.kind == "M" else "text"
            raise ConfigError(
                f"column {values.name} must hold numbers, since dataset.predicts={settings.predicts}, got {kind}; set "
                "dataset.predicts=class"
            )
    y = np.stack([columns.numbers(values) for values in target_columns], axis=1)
    if settings.predicts == "labels" and not np.isin(y, (0, 1)).all():
        odd = settings.targets[int((~np.isin(y, (0, 1))).any(axis=0).argmax())]
        raise ConfigError(
            f"column {odd} must hold nothing but 0 and 1, since dataset.predicts=labels, but holds other numbers; set "
            "dataset.predicts=numbers loss=mse, or dataset.predicts=class for one column of classes"
        )
    return y, settings.targets


def _test_rows(frame: "pd.DataFrame", settings: OwnTable, groups: np.ndarray) -> np.ndarray:
    """Which rows are for testing, a mask `[S]`: as a column says, else drawn of each of the `groups [S]`."""
    if settings.split is None:
        test = held_out_mask(groups, settings.test_fraction, stream(0, "table", "test"))
    else:
        marks = columns.texts(_complete_column(frame, settings.split, "dataset.split"))
        odd = sorted(set(marks.tolist()) - {"train", "test"})
        if odd:
            raise ConfigError(f"column {settings.split} must hold train or test in every row, got {odd[0]!r}")
        test = marks == "test"
    if (~test).sum() < 2 or not test.any():
        change = "lower" if test.any() else "raise"
        drawn = f"{change} dataset.test_fraction, a share of each class"
        cure = "name another dataset.split" if settings.split else drawn
        raise ConfigError(
            f"the table must give two training rows and a test row, got {int(test.sum())} of {len(test)} for testing; "
            f"{_suggest_numbers(frame, settings, cure)}"
        )
    return test


def _suggest_numbers(frame: "pd.DataFrame", settings: OwnTable, cure: str) -> str:
    """The advice for unusable classes; where the target holds numbers, it is to predict these instead."""
    target = columns.column(frame, settings.targets[0], "dataset.target")
    if settings.predicts != "class" or not columns.is_number(target):
        return cure
    return f"to predict its numbers set dataset.predicts=numbers loss=mse, else {cure}"


def _complete_column(frame: "pd.DataFrame", name: str, key: str) -> "pd.Series":
    return columns.demand_no_missing(columns.column(frame, name, key), "give every row one, or leave such rows out")
