"""Ranks of more than two methods over the same seeds: Friedman's test, Nemenyi's critical difference, the figure.

J. Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006). Blocks are the pairs' seeds
(and datasets) instead of his datasets; a run that never reached an accuracy has the last rank of its block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from fedexp.files.atomic import atomic_path
from fedexp.maths.significance import LEVEL
from fedexp.report.draw import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AXIS = 5.0  # inches


@dataclass(frozen=True)
class Ranks:
    """Mean rank of each method (1 is best) over the blocks; groups are pairs of positions in the order of ranks."""

    names: Sequence[str]
    mean: np.ndarray
    blocks: int
    p: float  # Friedman's
    difference: float  # Nemenyi's, at 5 %

    @property
    def order(self) -> list[int]:
        return np.argsort(self.mean, kind="stable").tolist()

    def groups(self) -> list[tuple[int, int]]:
        """First and last position of the longest stretches of ranks within the critical difference."""
        ordered = self.mean[self.order]
        stretches: list[tuple[int, int]] = []
        for first in range(len(ordered)):
            last = int(np.flatnonzero(ordered <= ordered[first] + self.difference)[-1])
            if last > first and (not stretches or last > stretches[-1][1]):
                stretches.append((first, last))
        return stretches


def rank_methods(names: Sequence[str], values: np.ndarray, *, higher_is_better: bool) -> Ranks:
    """Ranks of at least three methods: `values [blocks, methods]`, NaN where a run never reached the accuracy."""
    worst_last = np.where(np.isnan(values), np.inf, -values if higher_is_better else values)
    ranks = stats.rankdata(worst_last, axis=1)
    blocks, methods = ranks.shape
    same = bool((ranks == ranks[:, :1]).all())
    p = 1.0 if same or blocks < 2 else float(stats.friedmanchisquare(*ranks.T).pvalue)
    return Ranks(names, ranks.mean(axis=0), blocks, p, critical_difference(methods, blocks))


def critical_difference(methods: int, blocks: int) -> float:
    """Nemenyi's critical difference: mean ranks further apart differ at 5 %, with all pairs of methods considered."""
    quantile = stats.studentized_range.ppf(1 - LEVEL, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def draw(path: Path, ranks: Ranks, title: str, colors: Sequence[str] = style.COLORS) -> None:
    """Draws the axis of ranks, best on the left; a bar joins methods that do not differ.

    `colors` are those of the methods, in the order of their names.
    """
    from matplotlib.figure import Figure

    methods, groups = len(ranks.names), ranks.groups()
    rows = -(-methods // 2)
    depth = 0.8 + 0.3 * len(groups)
    name_width = 0.5 + 0.085 * max(len(name) + 6 for name in ranks.names)  # inches for a name
    figure = Figure(figsize=(_AXIS + 2 * name_width, 0.8 + 0.32 * (depth + rows)))
    axes = figure.add_axes((0, 0, 1, 0.87))
    margin = name_width / _AXIS * (methods - 1)
    axes.set_xlim(1 - margin, methods + margin)
    axes.set_ylim(depth + rows - 0.3, -2)
    axes.set_axis_off()
    axes.set_title(title, fontsize=11)
    _draw_scale(axes, ranks)
    for number, (first, last) in enumerate(groups):
        ends = ranks.mean[[ranks.order[first], ranks.order[last]]] + np.array([-0.02, 0.02]) * (methods - 1)
        axes.plot(ends, [0.45 + 0.3 * number] * 2, color="#222222", linewidth=4, solid_capstyle="butt")
    for position, method in enumerate(ranks.order):
        _draw_name(axes, ranks, (method, position), depth, colors[method % len(colors)])
    with atomic_path(path) as partial:
        figure.savefig(partial, format="png", dpi=150)


def _draw_scale(axes: "Axes", ranks: Ranks) -> None:
    methods = len(ranks.names)
    axes.plot([1, methods], [0, 0], color="#222222", linewidth=1.2)
    for tick in range(1, methods + 1):
        axes.plot([tick, tick], [0, -0.2], color="#222222", linewidth=1.2)
        axes.text(tick, -0.3, str(tick), ha="center", va="bottom", fontsize=9)
    reach = min(ranks.difference, methods - 1)
    axes.plot([1, 1 + reach], [-1.25, -1.25], color=style.QUIET, linewidth=2)
    beyond = " (wider than the axis)" if ranks.difference > methods - 1 else ""
    label = f"critical difference {ranks.difference:.2f}{beyond}"
    axes.text(1, -1.35, label, ha="left", va="bottom", fontsize=9, color=style.QUIET)


def _draw_name(axes: "Axes", ranks: Ranks, method_at: tuple[int, int], depth: float, color: str) -> None:
    """Writes the name of a method, given its number and its position in the order of ranks."""
    method, position = method_at
    methods, half = len(ranks.names), -(-len(ranks.names) // 2)
    on_left = position < half
    height = depth + (position if on_left else methods - 1 - position) + 0.1
    edge = 1 - 0.05 * (methods - 1) if on_left else methods + 0.05 * (methods - 1)
    mean = ranks.mean[method]
    axes.plot([mean, mean, edge], [0, height, height], color=color, linewidth=1.4)
    text = f"{ranks.names[method]}  {mean:.2f}" if on_left else f"{mean:.2f}  {ranks.names[method]}"
    away = -0.02 if on_left else 0.02
    axes.text(
        edge + away * (methods - 1), height, text, ha="right" if on_left else "left", va="center", fontsize=9,
        parse_math=False,
    )  # fmt: skip
