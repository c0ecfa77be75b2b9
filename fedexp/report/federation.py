"""`federation.csv` and `federation.png`: who holds how many examples of which class.

Legend: N clients, K classes. matplotlib is imported when a picture is drawn: it would slow every other command down.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.core.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLOCK = 1 << 16  # rows formatted at a time
_SINGLY = 100  # up to so many clients have a column each in the picture
_NUMBERED = 30  # up to so many clients and classes have their counts written out
_BINS = 100


def write_csv(path: Path, counts: np.ndarray, class_names: Sequence[str]) -> None:
    """One row a client: its number, its examples, its examples of each class; `counts` is [N, K]."""
    clients, classes = counts.shape
    row = ",".join(["%d"] * (classes + 2)) + "\n"
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(["client", "examples", *class_names])
        for start in range(0, clients, _BLOCK):
            block = counts[start : start + _BLOCK]
            table = np.column_stack([np.arange(start, start + len(block)), block.sum(axis=1), block])
            file.write(row * len(block) % tuple(table.ravel().tolist()))


def draw(path: Path, counts: np.ndarray, class_names: Sequence[str]) -> None:
    """A heat map of clients by classes below the client sizes; above 100 clients a summary; `counts` is [N, K]."""
    figure = _summary(counts, class_names) if len(counts) > _SINGLY else _every_client(counts, class_names)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=150)


def _every_client(counts: np.ndarray, class_names: Sequence[str]) -> "Figure":
    from matplotlib.figure import Figure

    clients, classes = counts.shape
    numbered = max(clients, classes) <= _NUMBERED
    cell = 0.42 if numbered else 0.11
    size = (2.6 + max(4.0, cell * clients), 2.4 + max(2.0, min(0.3 if numbered else 0.25, 8 / classes) * classes))
    figure = Figure(figsize=size, layout="constrained")
    top, main = figure.subplots(2, 1, sharex=True, height_ratios=[1, max(1.5, size[1] - 2.4)])
    sizes = counts.sum(axis=1)
    top.bar(np.arange(clients), sizes, width=0.8, color="#4c72b0")
    top.set_ylabel("Examples")
    top.yaxis.set_major_formatter("{x:,.0f}")
    top.set_title(f"{clients:,} client{'s' * (clients > 1)}, {sizes.sum():,} examples", fontsize=11)
    top.spines[["top", "right"]].set_visible(False)
    top.tick_params(axis="x", length=0, labelbottom=False)
    image = main.imshow(counts.T, aspect="auto", cmap="Blues", vmin=0, vmax=max(1, counts.max()))
    if numbered:
        _write_numbers(main, counts)
    _name_classes(main, class_names)
    _number_clients(main, clients, 1 if numbered else 10)
    figure.colorbar(image, ax=main, label="Examples", pad=0.02)
    return figure


def _write_numbers(axes: "Axes", counts: np.ndarray) -> None:
    dark = counts.max() / 2
    for (client, label), count in np.ndenumerate(counts):
        if count:
            color = "white" if count > dark else "#222222"
            axes.text(client, label, f"{count}", ha="center", va="center", fontsize=7, color=color)


def _name_classes(axes: "Axes", class_names: Sequence[str]) -> None:
    step = -(-len(class_names) // 40)
    shown = range(0, len(class_names), step)
    size = 8 if len(class_names) <= 24 else 6
    axes.set_yticks(shown, labels=[class_names[label] for label in shown], fontsize=size, parse_math=False)
    axes.set_ylabel("Class")


def _number_clients(axes: "Axes", clients: int, step: int) -> None:
    axes.set_xticks(range(0, clients, step))
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel("Client")


def _summary(counts: np.ndarray, class_names: Sequence[str]) -> "Figure":
    from matplotlib.figure import Figure

    height = 2.0 + max(2.6, min(0.25 * len(class_names), 8))
    figure = Figure(figsize=(11, height), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.7])
    sizes = counts.sum(axis=1)
    figure.suptitle(f"{len(counts):,} clients, {sizes.sum():,} examples", fontsize=12)
    _draw_sizes(left, sizes)
    image = right.imshow(grouped_shares(counts), aspect="auto", cmap="Blues", vmin=0)
    right.set_title("Class shares, clients ordered by their main class", fontsize=10)
    right.set_xlabel(f"Clients that hold examples, in {image.get_array().shape[1]} groups of equal number")
    _name_classes(right, class_names)
    figure.colorbar(image, ax=right, label="Mean share of a client's examples", pad=0.02)
    return figure


def _draw_sizes(axes: "Axes", sizes: np.ndarray) -> None:
    low, high = int(sizes.min()), int(sizes.max())
    width = max(1, -(-(high - low + 1) // 40))
    edges = np.arange(low, high + width + 1, width) - 0.5
    heights, _ = np.histogram(sizes, edges)
    axes.bar(edges[:-1] + width / 2, heights, width=0.9 * width, color="#4c72b0")
    if heights.max() > 100 * heights[heights > 0].min():
        axes.set(yscale="log", ylim=(0.5, None))
    else:
        axes.yaxis.set_major_formatter("{x:,.0f}")
    if high - low < 12:
        axes.set(xticks=range(low, high + 1), xlim=(low - 2, high + 2))
    spread = f"{low:,} to {high:,}, median {np.median(sizes):,.0f}" if high > low else f"all {low:,}"
    axes.set_title(f"Client sizes: {spread}", fontsize=10)
    axes.set_xlabel("Examples of a client")
    axes.set_ylabel("Clients")
    axes.spines[["top", "right"]].set_visible(False)


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
