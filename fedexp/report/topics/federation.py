"""Who holds how many examples of which class, of a run and in a report.

`federation.csv` and `federation.png`. A report draws each different division of the data among the clients once.
Legend: N clients, K classes.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.files import run_tables
from fedexp.files.atomic import atomic_path, display_path
from fedexp.parts.federation.statistics import label_distances
from fedexp.report.draw import heatmap, style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData, of_table
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run
from fedexp.report.read.site_names import label, names_by_client

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLOCK = 1 << 16  # rows formatted at a time
_MAX_COLUMNS = 100  # up to so many clients have a column each in the picture
_NUMBERED = 30  # up to so many clients and classes have their counts written out
_BINS = 100
_MAX_PARTITIONS = 8  # at most, in a report
Users = list[tuple[Method, Run]]


def write_csv(
    path: Path, counts: np.ndarray, class_names: Sequence[str], client_names: Sequence[str] | None = None
) -> None:
    """One row a client: its number, its name if it has one, its examples, those of each class; `counts` is [N, K]."""
    clients, classes = counts.shape
    row = ",".join(["%d"] * (classes + 2)) + "\n"
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["client", *["name"] * (client_names is not None), "examples", *class_names])
        if client_names is not None:
            writer.writerows([client, client_names[client], row.sum(), *row] for client, row in enumerate(counts))
            return
        for start in range(0, clients, _BLOCK):
            block = counts[start : start + _BLOCK]
            table = np.column_stack([np.arange(start, start + len(block)), block.sum(axis=1), block])
            file.write(row * len(block) % tuple(table.ravel().tolist()))


@style.style()
def draw(path: Path, counts: np.ndarray, class_names: Sequence[str], client_names: Sequence[str] | None = None) -> None:
    """Writes the picture of `counts [N, K]`."""
    style.save(path, figure(counts, class_names, client_names))


def figure(counts: np.ndarray, class_names: Sequence[str], client_names: Sequence[str] | None = None) -> "Figure":
    """A heat map of clients by classes below the client sizes; above 100 clients a summary; `counts` is [N, K]."""
    if len(counts) > _MAX_COLUMNS:
        return _summary_figure(counts, class_names)
    return _client_figure(counts, class_names, client_names)


def grouped_shares(counts: np.ndarray) -> np.ndarray:
    """Mean class shares [K, groups] of the non-empty clients, sorted by main class and its share, strongest first."""
    sizes = counts.sum(axis=1)
    shares = counts[sizes > 0] / sizes[sizes > 0, None]
    main = shares.argmax(axis=1)
    shares = shares[np.lexsort((-shares.max(axis=1), main))]
    groups = min(_BINS, len(shares))
    starts = np.arange(groups) * len(shares) // groups
    members = np.diff(starts, append=len(shares))
    return (np.add.reduceat(shares, starts, axis=0) / members[:, None]).T


def build_section(methods: Sequence[Method]) -> Section | None:
    """A picture for each of the first divisions."""
    partitions = find_partitions(methods)
    limit_note = (
        f" The first {_MAX_PARTITIONS} of {len(partitions)} federations." if len(partitions) > _MAX_PARTITIONS else ""
    )
    pictures = [
        Picture(
            name=f"federation_{number}",
            title=f"Federation {number}",
            figure=figure(counts.to_numpy(), [str(name) for name in counts], _client_names(counts)),
            data=_data(counts),
            caption=f"{_describe_users(users, methods)}.",
            tab=f"Federation {number}",
        )
        for number, (counts, users) in enumerate(partitions[:_MAX_PARTITIONS], start=1)
    ]
    return section(
        "federations", "Federations", f"Examples of each class that the clients train on.{limit_note}", pictures
    )


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
    partitions = [(_read_counts(users[0][1].folder / "federation.csv"), users) for users in users_by_table.values()]
    return [(counts, users) for counts, users in partitions if counts.size]


def _data(counts: "pd.DataFrame") -> PictureData:
    """The examples of each client."""
    table = counts.to_numpy()
    rows = [[str(client), str(row.sum()), *map(str, row)] for client, row in zip(counts.index, table, strict=True)]
    sizes = table.sum(axis=1)
    text = f"{_heading(table)}. Client sizes from {sizes.min():,} to {sizes.max():,}.".replace("\n", ". ")
    return of_table(Grid(("client", "examples", *map(str, counts)), rows), "clients", text)


def _client_names(counts: "pd.DataFrame") -> list[str] | None:
    return None if counts.index.dtype.kind == "i" else list(counts.index)


def _client_figure(counts: np.ndarray, class_names: Sequence[str], client_names: Sequence[str] | None) -> "Figure":
    from matplotlib.figure import Figure

    clients, classes = counts.shape
    numbered = max(clients, classes) <= _NUMBERED
    cell = 0.42 if numbered else 0.11
    size = (2.6 + max(4.0, cell * clients), 2.4 + max(2.0, min(0.3 if numbered else 0.25, 8 / classes) * classes))
    drawn = Figure(figsize=size, layout="constrained")
    top, main = drawn.subplots(2, 1, sharex=True, height_ratios=[1, max(1.5, size[1] - 2.4)])
    sizes = counts.sum(axis=1)
    top.bar(np.arange(clients), sizes, width=0.8, color=style.COLORS[0])
    top.set(ylabel="Examples")
    top.set_title(_heading(counts), fontsize=10)
    top.yaxis.set_major_formatter("{x:,.0f}")
    top.grid(visible=False, axis="x")
    top.tick_params(axis="x", length=0, labelbottom=False)
    heatmap.draw_cells(drawn, main, counts.T, "Examples")
    if numbered:
        heatmap.draw_numbers(main, counts.T, lambda count: f"{count}" if count else "")
    _name_classes(main, class_names)
    if client_names is not None and clients <= _NUMBERED:
        style.name_columns(main, client_names[:clients])
    else:
        main.set_xticks(range(0, clients, 1 if numbered else 10))
    main.set_xlabel("Client")
    return drawn


def _summary_figure(counts: np.ndarray, class_names: Sequence[str]) -> "Figure":
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(11, 2.0 + max(2.6, min(0.25 * len(class_names), 8))), layout="constrained")
    sizes_axes, shares_axes = drawn.subplots(1, 2, width_ratios=[1, 1.7])
    sizes, shares = counts.sum(axis=1), grouped_shares(counts)
    drawn.suptitle(_heading(counts), fontsize=11)
    _draw_sizes(sizes_axes, sizes)
    heatmap.draw_cells(drawn, shares_axes, shares, "Mean share of a client's examples")
    shares_axes.set_title("Class shares, clients ordered by their main class", fontsize=10)
    shares_axes.set_xlabel(f"Clients that hold examples, in {shares.shape[1]} groups of equal number")
    _name_classes(shares_axes, class_names)
    return drawn


def _heading(counts: np.ndarray) -> str:
    clients, examples = len(counts), int(counts.sum())
    heading = f"{clients:,} client{'s' * (clients > 1)}, {examples:,} examples"
    if clients == 1 or counts.shape[1] == 1 or not examples:
        return heading
    total, jensen_shannon, hellinger = (distance["mean"] for distance in label_distances(counts).values())
    distances = f"total variation {total:.2f}, Jensen-Shannon {jensen_shannon:.2f}, Hellinger {hellinger:.2f}"
    return f"{heading}\nMean distance to all labels: {distances}"


def _name_classes(axes: "Axes", class_names: Sequence[str]) -> None:
    shown = range(0, len(class_names), -(-len(class_names) // 40))
    size = 8 if len(class_names) <= 24 else 6
    axes.set_yticks(shown, labels=[style.shorten(class_names[label]) for label in shown], fontsize=size)
    axes.set_ylabel("Class")


def _draw_sizes(axes: "Axes", sizes: np.ndarray) -> None:
    low, high = int(sizes.min()), int(sizes.max())
    width = max(1, -(-(high - low + 1) // 40))
    edges = np.arange(low, high + width + 1, width) - 0.5
    heights, _ = np.histogram(sizes, edges)
    axes.bar(edges[:-1] + width / 2, heights, width=0.9 * width, color=style.COLORS[0])
    if heights.max() > 100 * heights[heights > 0].min():
        axes.set(yscale="log", ylim=(0.5, None))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    if high - low < 12:
        axes.set(xticks=range(low, high + 1), xlim=(low - 2, high + 2))
    spread = f"{low:,} to {high:,}, median {np.median(sizes):,.0f}" if high > low else f"all {low:,}"
    axes.set_title(f"Client sizes: {spread}", fontsize=10)
    axes.set(xlabel="Examples of a client", ylabel="Clients")


def _read_counts(path: Path) -> "pd.DataFrame":
    names = names_by_client(path)
    counts = run_tables.read_frame(path).iloc[:, 3 if names else 2 :]
    for name, column in counts.items():
        if len(column) and (column.dtype.kind != "i" or column.min() < 0):
            raise ConfigError(
                f"{display_path(path)} must have whole numbers from 0 on in its column {name}; is it damaged?"
            )
    return counts.set_axis([label(client, names) for client in range(len(counts))]) if names else counts


def _describe_users(users: Users, methods: Sequence[Method]) -> str:
    """Which seeds, and which methods unless it is all of them."""
    seeds = sorted({run.seed for _, run in users if run.seed is not None})
    named = list(dict.fromkeys(method.label for method, _ in users))
    of_seeds = f"Seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}" if seeds else "Unknown seed"
    return f"{of_seeds} of {'every method' if len(named) == len(methods) else '; '.join(named)}"
