"""A user's own table: one row an example, in a CSV or Parquet file.

Columns of numbers are standardised by mean and deviation of the training rows. Columns of text become one column for
each category of the training rows; a row with another category has 0 in all of them. One column is the target, or
several. A column `client` says whose each row is (`federation=subject`), a column `split` which rows are for testing:
its values are `train` and `test`. Without it, `test_fraction` of the rows (of each class) are drawn, the same in every
run whatever its seed.

Targets are the classes in ascending order, numbers, or labels (columns of 0 and 1). Numbers are standardised too, so
errors are in deviations of the training targets; `target_scale: raw` leaves them.

Means, deviations and categories tell of the rows of all clients, which no promise of privacy covers. With `statistics:
public` they are those of another file, with `clipped` numbers are clipped to given `ranges` and scaled to [-1, 1] by
them, and categories are given. Legend: S rows, K targets.
"""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from fedexp.data import table as columns
from fedexp.data.columns import MAX_CATEGORIES, columns_in_ranges, encode_columns, fit_columns, number_columns
from fedexp.data.encoding import Column, held_out_mask, standardise_with_moments
from fedexp.parts import ConfigError, Data, Dataset, Facts, Range, find_user_file, split_by_mask, stamp, stream

if TYPE_CHECKING:
    import pandas as pd


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
    statistics: Literal["pooled", "public", "clipped"] = "pooled"
    public_file: Path | None = None
    ranges: dict | None = None

    def __hash__(self) -> int:
        return hash((self.file, self.target))

    def check(self) -> None:
        if not self.targets or (self.predicts == "class" and len(self.targets) > 1):
            raise ConfigError(
                f"OwnTable.target must be one column where classes are predicted, got {list(self.targets)}; set "
                "dataset.predicts=numbers or dataset.predicts=labels"
            )
        for key, names in (("target", self.targets), ("ignore", self.ignore)):
            if len(set(names)) < len(names):
                raise ConfigError(f"OwnTable.{key} must name each column once, got {list(names)}; leave the rest out")
        for value, key, source in (("public", "public_file", self.public_file), ("clipped", "ranges", self.ranges)):
            if (self.statistics == value) != (source is not None):
                raise ConfigError(f"dataset.{key} goes with dataset.statistics={value}; give both or neither")
        if (self.statistics, self.predicts, self.target_scale) == ("clipped", "numbers", "standard"):
            raise ConfigError("dataset.statistics=clipped has no deviation of the target; set dataset.target_scale=raw")

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
        files = [self._file(directory)]
        if self.public_file is not None:
            files.append(find_user_file(self.public_file, directory, "dataset.public_file", ".csv or .parquet"))
        return _parse(self, stamp(*files))

    def leaks(self) -> str:
        if self.statistics != "pooled":
            return ""
        return "nor are means, deviations and categories of all training rows, which encode the table"

    @property
    def _kind(self) -> str:
        return {"class": "classes", "numbers": "numbers to predict", "labels": "labels"}[self.predicts]

    def _file(self, directory: Path) -> Path:
        return find_user_file(self.file, directory, "dataset.file", ".csv or .parquet")


@lru_cache(maxsize=1)
def _parse(settings: OwnTable, source: tuple[tuple[str, int, int], ...]) -> Data:
    """Reads the files once for facts and examples, as long as their sizes and times stay."""
    frame = columns.read(Path(source[0][0]))
    public = columns.read(Path(source[1][0])) if settings.public_file is not None else None
    y, names = _targets(frame, settings)
    groups = y if settings.predicts == "class" else np.zeros(len(frame), np.int64)
    test = _test_rows(frame, settings, groups)
    if settings.predicts == "class" and (unseen := sorted(set(range(len(names))) - set(y[~test].tolist()))):
        cure = _suggest_numbers(frame, settings, "call some of them train, or leave them out")
        raise ConfigError(
            f"column {settings.targets[0]} must hold every class in the training rows, but {names[unseen[0]]} "
            f"is in test rows alone; {cure}"
        )
    target_columns = tuple(map(Column, names)) if settings.predicts == "numbers" else ()
    if settings.predicts == "numbers" and settings.target_scale == "standard":
        y, target_columns = _standard_targets(y, settings, ~test, public)
    if settings.predicts != "class":
        y = columns.to_float32(y, " or ".join(settings.targets), "correct them")
    client = client_names = None
    if settings.client is not None:
        client_names, client = columns.encode_distinct(_complete_column(frame, settings.client, "dataset.client"))
    x, x_columns = _examples(frame, settings, ~test, public)
    train, test_examples = split_by_mask(test, x, y, client)
    subject_names = None if client_names is None else tuple(client_names)
    return Data(
        train, test_examples, names, columns=x_columns, target_columns=target_columns, subject_names=subject_names
    )


def _standard_targets(
    y: np.ndarray, settings: OwnTable, train: np.ndarray, public: "pd.DataFrame | None"
) -> tuple[np.ndarray, tuple[Column, ...]]:
    """Numbers `[S, K]` in deviations of the training rows, or of public ones, and by what they were divided."""
    if public is None:
        y, *moments = standardise_with_moments(y, train)
        return y, number_columns(settings.targets, *moments)
    public_y = np.stack(
        [columns.numbers(_complete_column(public, name, "dataset.target")) for name in settings.targets]
    )
    _, mean, std = standardise_with_moments(public_y.T, np.ones(len(public), bool))
    return (y - mean) / std, number_columns(settings.targets, mean, std)


def _examples(
    frame: "pd.DataFrame", settings: OwnTable, train: np.ndarray, public: "pd.DataFrame | None"
) -> tuple[np.ndarray, tuple[Column, ...]]:
    """The columns that are neither targets nor named otherwise, as float32 `[S, F]`, and how they became that."""
    for name in settings.ignore:
        columns.column(frame, name, "dataset.ignore")
    excluded = {*settings.targets, settings.client, settings.split, *settings.ignore}
    names, fill = [name for name in frame.columns if name not in excluded], settings.missing == "fill"
    if settings.statistics == "pooled":
        x, encoded = fit_columns(frame, names, train, fill=fill)
    else:
        encoded = _given_columns(settings, names, public, fill=fill)
        x = encode_columns(frame, encoded)
    if not x.shape[1]:
        raise ConfigError(
            f"the table must have a column to predict {', '.join(settings.targets)} from, but has no other"
        )
    return x, encoded


def _given_columns(
    settings: OwnTable, names: list[str], public: "pd.DataFrame | None", *, fill: bool
) -> tuple[Column, ...]:
    """How columns become numbers without a look at anybody's rows: by ranges, or by rows that are public."""
    if public is None:
        return columns_in_ranges(settings.ranges or {}, names, fill=fill)
    if missing := [name for name in names if name not in public.columns]:
        raise ConfigError(f"dataset.public_file must have the columns of the table, but lacks {missing[0]}; add it")
    return fit_columns(public, names, np.ones(len(public), bool), fill=fill)[1]


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
