"""The federations of a report: each different division of the data among the clients, once."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.core.errors import ConfigError
from fedexp.files import run_tables
from fedexp.files.atomic import display_path
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run
from fedexp.report.topics import federation

if TYPE_CHECKING:
    import pandas as pd

_MOST = 8
_NOTE = "Examples of each class that the clients hold."
Users = list[tuple[Method, Run]]


def build_section(methods: Sequence[Method]) -> Section | None:
    """A picture for each of the first divisions."""
    partitions = find_partitions(methods)
    limit_note = f" The first {_MOST} of {len(partitions)} federations." if len(partitions) > _MOST else ""
    pictures = [
        Picture(
            name=f"federation_{number}",
            title=f"Federation {number}",
            figure=federation.figure(counts.to_numpy(), [str(name) for name in counts]),
            caption=f"{_describe_users(users, methods)}.",
            tab=f"Federation {number}",
        )
        for number, (counts, users) in enumerate(partitions[:_MOST], start=1)
    ]
    return section("federations", "Federations", f"{_NOTE}{limit_note}", pictures)


def find_partitions(methods: Sequence[Method]) -> "list[tuple[pd.DataFrame, Users]]":
    """The examples that each client (row) holds of each class (column), and the runs of this division.

    Raises:
        ConfigError: a federation.csv counts something else than whole examples.
    """
    users_by_table: dict[bytes, Users] = {}
    for method in methods:
        for run in method.runs:
            path = run.folder / "federation.csv"
            if path.is_file():
                users_by_table.setdefault(path.read_bytes(), []).append((method, run))
    partitions = [(_counts(users[0][1].folder / "federation.csv"), users) for users in users_by_table.values()]
    return [(counts, users) for counts, users in partitions if counts.size]


def _counts(path: Path) -> "pd.DataFrame":
    counts = run_tables.read_frame(path).iloc[:, 2:]
    for name, column in counts.items():
        if column.dtype.kind != "i" and len(column):
            raise ConfigError(f"{display_path(path)} must have whole numbers in its column {name}; is it damaged?")
    return counts


def _describe_users(users: Users, methods: Sequence[Method]) -> str:
    """Which seeds, and which methods unless it is all of them."""
    seeds = sorted({run.seed for _, run in users if run.seed is not None})
    named = list(dict.fromkeys(method.label for method, _ in users))
    of_seeds = f"Seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}" if seeds else "Unknown seed"
    return f"{of_seeds} of {'every method' if len(named) == len(methods) else '; '.join(named)}"
