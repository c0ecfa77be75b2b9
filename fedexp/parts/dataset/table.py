"""A user's own table: one row an example, in a CSV or Parquet file.

Columns of numbers are standardised by mean and deviation of the training rows. Columns of text become one column for
each category of the training rows; a row with another category has 0 in all of them. One column is the target, or
several. A column `client` says whose each row is (`federation=subject`), a column `split` which rows are for testing:
its values are `train` and `test`. Without it, `test_fraction` of the rows (of each class) are drawn, the same in every
run whatever its seed.

Targets are the classes in ascending order, numbers, or labels (columns of 0 and 1). Numbers are standardised too, so
errors are in deviations of the training targets (with `statistics: public` of public ones); `target_scale: raw` leaves
them.

Means, deviations and categories tell of the rows of all clients, which no promise of privacy covers. With `statistics:
public` they are those of another file, with `clipped` numbers are clipped to given `ranges` and scaled to [-1, 1] by
them, and categories are given. Legend: S rows, K targets.
"""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from fedexp.data.tables import table as columns
from fedexp.data.tables.category_checks import describe_doubts
from fedexp.data.tables.columns import columns_in_ranges, encode_columns, fit_columns, has_categories
from fedexp.data.tables.encoding import Column, held_out_mask
from fedexp.data.tables.replaced_cells import describe_replaced_cells
from fedexp.parts import ConfigError, Data, Dataset, Facts, Range, find_user_file, split_by_mask, stamp, stream
from fedexp.parts.dataset.table_targets import (
    Predicts,
    complete_column,
    read_targets,
    standard_targets,
    suggest_numbers,
)

if TYPE_CHECKING:
    import pandas as pd


FILLED = {"pooled": "the training mean", "public": "the public mean", "clipped": "the middle of its range"}


class OwnTable(Dataset):
    """`missing=fill`: a missing number is one of `FILLED`, a missing text no category."""

    file: Path
    target: str | tuple[str, ...]
    predicts: Predicts = "class"
    client: str | None = None
    split: str | None = None
    test_fraction: Annotated[float, Range(0, 1, low_open=True, high_open=True)] = 0.2
    ignore: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
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
        for key, names in (("target", self.targets), ("ignore", self.ignore), ("categories", self.categories)):
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
    file, *public_files = (Path(path) for path, *_ in source)
    public = columns.read(public_files[0], settings.categories) if public_files else None
    frame = columns.read(file, _text_columns(settings, public))
    inputs = _input_names(frame, settings)
    y, names = read_targets(frame, settings.targets, settings.predicts)
    groups = y if settings.predicts == "class" else np.zeros(len(frame), np.int64)
    test = _test_rows(frame, settings, groups)
    if settings.predicts == "class" and (unseen := sorted(set(range(len(names))) - set(y[~test].tolist()))):
        cure = suggest_numbers(frame, settings.targets, settings.predicts, "call some of them train, or leave them out")
        raise ConfigError(
            f"column {settings.targets[0]} must hold every class in the training rows, but {names[unseen[0]]} "
            f"is in test rows alone; {cure}"
        )
    target_columns = tuple(map(Column, names)) if settings.predicts == "numbers" else ()
    if settings.predicts == "numbers" and settings.target_scale == "standard":
        y, target_columns = standard_targets(y, settings.targets, ~test, public)
    if settings.predicts != "class":
        y = columns.to_float32(y, " or ".join(settings.targets), "correct them")
    client = client_names = None
    if settings.client is not None:
        client_names, client = columns.encode_distinct(complete_column(frame, settings.client, "dataset.client"))
    x, x_columns = _examples(frame, settings, inputs, ~test, public)
    doubts = [*describe_doubts(frame, inputs, settings.targets[0] if settings.predicts == "class" else None)]
    if replaced := describe_replaced_cells(frame, x_columns):
        doubts.append(f"{replaced}; a number that is missing becomes {FILLED[settings.statistics]}, a text no category")
    train, test_examples = split_by_mask(test, x, y, client)
    subject_names = None if client_names is None else tuple(client_names)
    named = {"columns": x_columns, "target_columns": target_columns, "subject_names": subject_names}
    return Data(train, test_examples, names, doubts=tuple(doubts), **named)


def _text_columns(settings: OwnTable, public: "pd.DataFrame | None") -> list[str]:
    """The columns of which numbers are texts, too: those of given categories, and what a public table has as texts."""
    in_ranges = [name for name, values in (settings.ranges or {}).items() if has_categories(values)]
    texts = [] if public is None else [str(name) for name, values in public.items() if not columns.is_number(values)]
    no_inputs = {*settings.targets, settings.client, settings.split, *settings.ignore}
    return [*dict.fromkeys([*settings.categories, *in_ranges, *(name for name in texts if name not in no_inputs)])]


def _input_names(frame: "pd.DataFrame", settings: OwnTable) -> list[str]:
    """The columns that are neither targets nor named otherwise."""
    for key in ("ignore", "categories"):
        for name in getattr(settings, key):
            columns.column(frame, name, f"dataset.{key}")
    excluded = {*settings.targets, settings.client, settings.split, *settings.ignore}
    if misplaced := [name for name in settings.categories if name in excluded]:
        raise ConfigError(
            f"dataset.categories must name columns that are predicted from, got {misplaced[0]}; leave it out"
        )
    return [name for name in frame.columns if name not in excluded]


def _examples(
    frame: "pd.DataFrame", settings: OwnTable, names: list[str], train: np.ndarray, public: "pd.DataFrame | None"
) -> tuple[np.ndarray, tuple[Column, ...]]:
    """The columns `names` as float32 `[S, F]`, and how they became that."""
    fill = settings.missing == "fill"
    if settings.statistics == "pooled":
        x, encoded = fit_columns(frame, names, train, fill=fill, categories=settings.categories)
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
    return fit_columns(public, names, np.ones(len(public), bool), fill=fill, categories=settings.categories)[1]


def _test_rows(frame: "pd.DataFrame", settings: OwnTable, groups: np.ndarray) -> np.ndarray:
    """Which rows are for testing, a mask `[S]`: as a column says, else drawn of each of the `groups [S]`."""
    if settings.split is None:
        test = held_out_mask(groups, settings.test_fraction, stream(0, "table", "test"))
    else:
        marks = columns.texts(complete_column(frame, settings.split, "dataset.split"))
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
            f"{suggest_numbers(frame, settings.targets, settings.predicts, cure)}"
        )
    return test
