"""`sweep.png`: a bar for each combination of a sweep, the best on top."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedexp.report.draw import style


@dataclass(frozen=True)
class SweepBar:
    """One bar: its label, its length, and the standard deviation over seeds if there is one."""

    label: str
    mean: float
    std: float | None


@style.style()
def draw(path: Path, bars: Sequence[SweepBar], title: str, *, higher_is_better: bool = False) -> None:
    """Bars from 0, standard deviations as lines where there are some; the first is the best, in another colour."""
    positions, means = np.arange(len(bars)), np.array([bar.mean for bar in bars])
    stds = np.array([np.nan if bar.std is None else bar.std for bar in bars])
    several = np.isfinite(stds) & np.isfinite(means)
    over = " (mean ± standard deviation over seeds)" if several.any() else ""
    better = "higher" if higher_is_better else "lower"
    size = (8, 1.3 + 0.26 * len(bars))
    figure, axes = style.canvas(f"{title}{over}", f"Area over rounds, {better} is better", size=size)
    colors = [style.COLORS[0] if mean == means[0] else style.COLORS[5] for mean in means]
    axes.barh(positions, np.where(np.isfinite(means), means, 0), height=0.75, color=colors)
    axes.errorbar(means[several], positions[several], xerr=stds[several], fmt="none", ecolor=style.INK, capsize=2)
    axes.set_yticks(positions, labels=[bar.label for bar in bars], fontsize=8)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    style.save(path, figure)
