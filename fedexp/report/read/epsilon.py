"""Epsilon beside accuracy: the ledger's column of a run, and an axis of epsilons above one of rounds.

Of the two accountants' epsilons the one from the privacy loss distribution is shown; the other is in `metrics.csv`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedexp.report.read.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMN = "privacy.epsilon_pld"
ALIKE = 1e-3  # relative difference up to which two ledgers are drawn as one
_APART = 0.06  # of the axis: the least distance between two labels


def has_epsilon(run: Run) -> bool:
    """Whether the ledger of a run has an epsilon that is finite."""
    return bool(np.isfinite(run.column(COLUMN)).any())


def shared_epsilons(runs: Sequence[Run]) -> tuple[np.ndarray, np.ndarray] | None:
    """Rounds `[n]` and epsilons `[n]` of the longest run, if all have the same in the same rounds; else None."""
    courses = sorted(
        ((run.rounds.astype(float), run.column(COLUMN)) for run in runs), key=lambda course: len(course[0])
    )
    if not courses:
        return None
    rounds, epsilon = courses[-1]
    for run_rounds, spent in courses:
        if not np.allclose(spent, np.interp(run_rounds, rounds, epsilon), rtol=ALIKE, equal_nan=True):
            return None
    return rounds, epsilon


def axis_label(runs: Sequence[Run]) -> str:
    """What the numbers on an axis of epsilons are."""
    deltas = {run.config.get("privacy.delta") for run in runs}
    delta_text = f" at δ = {deltas.pop():g}" if len(deltas) == 1 and None not in deltas else ""
    return f"ε{delta_text} (PLD)"


def add_top_axis(axes: "Axes", rounds: np.ndarray, epsilon: np.ndarray, name: str) -> None:
    """Labels the top edge with the epsilons `[n]` of the `rounds [n]`."""
    positions, ticks = epsilon_ticks(rounds, epsilon, axes.get_xlim())
    top = axes.secondary_xaxis("top")
    top.set_xticks(positions, labels=[f"{tick:.3g}" for tick in ticks])
    top.set_xlabel(name)
    top.spines["top"].set_visible(True)
    axes.spines["top"].set_visible(True)


def epsilon_ticks(
    rounds: np.ndarray, epsilon: np.ndarray, limits: tuple[float, float]
) -> tuple[list[float], list[float]]:
    """Round values of epsilon and its last value, each with its round (as a fraction), none too close to the next.

    `rounds [n]` and `epsilon [n]` are the course.

    Example:
        >>> epsilon_ticks(np.array([1.0, 8.2]), np.array([2.0, 16.4]), (1.0, 8.2))
        ([2.5, 5.0, 7.5, 8.2], [5.0, 10.0, 15.0, 16.4])
    """
    from matplotlib.ticker import MaxNLocator

    finite = np.isfinite(epsilon)
    rounds, epsilon = rounds[finite], epsilon[finite]
    wanted = MaxNLocator(nbins=7, steps=[1, 2, 5, 10]).tick_values(epsilon.min(), epsilon.max())
    ticks = [(float(rounds[-1]), float(epsilon[-1]))]
    for tick in sorted((value for value in wanted if epsilon.min() <= value <= epsilon.max()), reverse=True):
        position = float(np.interp(tick, epsilon, rounds))
        if ticks[-1][0] - position >= _APART * (limits[1] - limits[0]):
            ticks.append((position, round(float(tick), 10)))
    return [position for position, _ in reversed(ticks)], [tick for _, tick in reversed(ticks)]
