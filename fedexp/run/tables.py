"""The tables that a run appends to while it lasts: metrics.csv, clients.csv, clusters.csv, digests.csv.

Each round's lines are flushed as they are written. On resume everything after the state's round is removed, and a line
that was cut off. A value that does not exist, or is infinite, is an empty cell. The logbook writes them. Behind the
first columns of metrics.csv come those of the first round's row: `simulation/round.py`, `rounds.py` and `measures/`
make it.
"""

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.core.values import State, Uploads
from fedexp.files.atomic import atomic_path
from fedexp.files.open_folders import refuse_other_file, refuse_other_folder
from fedexp.files.run_tables import Line, split
from fedexp.maths.curve_metrics import MULTI_VALUED
from fedexp.simulation import context
from fedexp.simulation.round import Row
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World, with_client_name

METRICS = (
    "round",
    "test_loss",
    "validation_loss",
    "train_loss",
    "participants",
    "examples",
    "mb_down",
    "mb_up",
    "select_s",
    "train_s",
    "aggregate_s",
    "evaluate_s",
    "host_s",
    "sim_s",
)
TIMINGS = ("select_s", "train_s", "aggregate_s", "evaluate_s", "host_s", "selector.shapley_s")
CLUSTERS = ("round", "event", "client", "cluster", "distance")
CLIENTS = ("round", "client", "examples", "loss_before", "loss_after")
TABLES = {"metrics.csv": METRICS, "clients.csv": CLIENTS, "clusters.csv": CLUSTERS}  # and the columns each must have


def metrics_columns(exp: Experiment) -> tuple[str, ...]:
    """The first columns of metrics.csv: `METRICS`, and each metric behind the loss of the same data."""
    measured = [name for name in exp.metrics if name not in MULTI_VALUED]
    columns_after = {f"{kind}_loss": [f"{kind}_{name}" for name in measured] for kind in ("test", "validation")}
    return tuple(column for name in METRICS for column in (name, *columns_after.get(name, ())))


def first_columns(exp: Experiment) -> dict[str, tuple[str, ...]]:
    """The first columns of each table to which the run's rounds add lines, digests.csv apart."""
    clusters = {"clusters.csv": CLUSTERS} if exp.clustering.has_clusters else {}
    return {"metrics.csv": metrics_columns(exp), "clients.csv": (*CLIENTS, *exp.pacing.client_columns), **clusters}


class GrowingCsv:
    """A CSV file that grows by whole lines; its first column is the round. With `single` a round has one line."""

    def __init__(self, path: Path, upto: int, *, single: bool = False) -> None:
        refuse_other_folder(path)
        self.path = path
        self.columns = truncate(path, upto, single=single)
        self.file = path.open("ab", buffering=0)  # unbuffered: what a full disk refused is not tried again

    def append(self, rows: Sequence[Mapping[str, Any]], first_columns: tuple[str, ...]) -> list[Line]:
        """Adds rows in one write and returns them as they read back; the first of a file fixes its columns.

        Raises:
            FolderGoneError: the path no longer leads to the file that was opened.
        """
        refuse_other_file(self.path, self.file.fileno())
        text, lines = io.StringIO(), []
        writer = csv.writer(text, lineterminator="\n")
        if self.columns is None:
            row_columns = rows[0].keys() if rows else ()
            self.columns = (*first_columns, *(name for name in row_columns if name not in first_columns))
            writer.writerow(self.columns)
        for row in rows:
            unknown = row.keys() - set(self.columns)
            if unknown:
                raise ConfigError(
                    f"{self.path.name}: columns {sorted(unknown)} were not there in the first round; "
                    "a part must report the same columns in every round"
                )
            lines.append({name: str(format_cell(row.get(name))) for name in self.columns})
            writer.writerow(lines[-1].values())
        remaining = memoryview(text.getvalue().encode())
        while remaining:
            remaining = remaining[self.file.write(remaining) :]
        return lines

    def sync(self) -> None:
        """Forces the lines to the disk, before a state that relies on them is saved; raises like `append`."""
        refuse_other_file(self.path, self.file.fileno())
        os.fsync(self.file.fileno())

    def close(self) -> None:
        """Closes the file."""
        self.file.close()


def truncate(path: Path, upto: int, *, single: bool = False) -> tuple[str, ...] | None:
    """Cuts a table after the last line of a round <= `upto` in order; returns its columns, None if nothing is left.

    With `single` a second line of a round is cut as well. With `upto` 0 not even the header stays, as it may be
    damaged.
    """
    if not path.exists():
        return None
    keep, columns, last = 0, None, 0
    with path.open("rb") as file:
        for line in file if upto else ():
            cells = split(line)
            if cells is None or (columns and len(cells) != len(columns)):
                break
            if columns is None:
                columns = tuple(cells)
            elif cells[0].isdecimal() and last + single <= int(cells[0]) <= upto:
                last = int(cells[0])  # lines of round 0 are written with round 1
            else:
                break
            keep += len(line)
    os.truncate(path, keep)
    return columns


def write_table(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Writes a table in one step: it appears complete or not at all."""
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([format_cell(row[name]) for name in columns] for row in rows)


def round_rows(exp: Experiment, world: World, state: State, row: Row, uploads: Uploads) -> dict[str, list[Row]]:
    """What each table gets for the round that led to `state`, whose line of metrics.csv is `row`."""
    pacing_columns = exp.pacing.client_values(uploads.owner, state.memory.get("pacing", {}))
    privacy_columns = exp.privacy.client_columns(
        uploads.owner, state.memory.get("privacy", {}), context.make_context(world, state.round)
    )
    rows = {"metrics.csv": [row], "clients.csv": client_rows(state.round, uploads, pacing_columns | privacy_columns)}
    if exp.clustering.has_clusters:
        events = state.memory["clustering"].get("events", ())
        rows["clusters.csv"] = [dict(zip(CLUSTERS, event, strict=True)) for event in events]
    names = world.client_names
    return {table: [with_client_name(line, names) for line in table_rows] for table, table_rows in rows.items()}


def client_rows(number: int, uploads: Uploads, extra: dict[str, np.ndarray]) -> list[Row]:
    """The line of every participant of a round; `extra` holds columns `[C]` of when it came and what it has spent."""
    losses = (uploads.loss_before, uploads.loss_after) if uploads.exact is None else uploads.exact.T
    columns = (uploads.owner, uploads.examples, *losses, *extra.values())
    return [
        dict(zip((*CLIENTS, *extra), (number, *values), strict=True))
        for values in zip(*(column.tolist() for column in columns), strict=True)
    ]


def format_cell(value: Any) -> Any:
    """The shortest text that reads back as the same value; empty for one that does not exist or is infinite."""
    value = cell_value(value)
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else value


def cell_value(value: Any) -> Any:
    """The value of a cell; None for one that does not exist or is infinite."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
