"""What privacy costs: accuracy over rounds with epsilon above them, and over epsilon where that is another picture.

Methods whose ledgers agree round by round share one axis of epsilons. Where ledgers differ no such axis is true for
all of them, and a second panel has the accuracy over the epsilon that was spent. Methods without a finite epsilon lie
there as horizontal lines at their last accuracy.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.files import run_tables
from fedexp.maths.curve_metrics import final
from fedexp.report.draw import bands, style
from fedexp.report.draw.section import Picture
from fedexp.report.read import epsilon
from fedexp.report.read.measures import statistic
from fedexp.report.read.methods import Method, group_runs
from fedexp.report.read.one_at_a_time import one_key_variations
from fedexp.report.read.runs import collect_runs, find_run_folders, shared_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def pictures(methods: Sequence[Method]) -> Iterator[Picture]:
    """One for each key if the methods vary one at a time, with colours and a legend of its own, else one for all."""
    variations = one_key_variations(methods)
    for variation in variations:
        if (drawn := figure(variation.methods)) is not None:
            style.add_legend(drawn, variation.methods)
            key = re.sub(r"\W", "_", variation.key)
            title = f"Privacy and accuracy by {variation.key}"
            yield Picture(name=f"epsilon_{key}", title=title, figure=drawn, caption=f"By {variation.key}.")
    if not variations and (drawn := figure(methods)) is not None:
        yield Picture(name="epsilon", title="Privacy and accuracy", figure=drawn, methods=methods)


def figure(methods: Sequence[Method]) -> "Figure | None":
    """One panel where the ledgers agree, else two; None where nothing is protected."""
    from matplotlib.figure import Figure

    runs = [run for method in methods for run in method.runs if epsilon.has_epsilon(run)]
    if not runs:
        return None
    course = epsilon.shared_epsilons(runs)
    drawn = Figure(figsize=(6.2 if course else 9.6, 3.8), layout="constrained")
    round_axes, *epsilon_axes = drawn.subplots(1, 1 if course else 2, sharey=True, squeeze=False)[0]
    metric = shared_metric([run for method in methods for run in method.runs])
    bands.draw(round_axes, methods, bands.by_round(f"test_{metric}"))
    round_axes.set(title=f"Test {metric} by round", xlabel="Round", ylabel=metric.capitalize())
    style.integer_ticks(round_axes.xaxis)
    if course:
        epsilon.add_top_axis(round_axes, *course, epsilon.axis_label(runs))
    for axes in epsilon_axes:
        _draw_over_epsilon(axes, methods, f"test_{metric}")
        axes.set(title=f"Test {metric} by epsilon spent", xlabel=epsilon.axis_label(runs))
    return drawn


@style.style()
def conclude(folder: Path) -> list[Path]:
    """Writes the figures of a sweep into its folder, if a ledger was kept in it; returns their files."""
    if not any(epsilon.COLUMN in run_tables.read_frame(run / "metrics.csv") for run in find_run_folders(folder)):
        return []
    return [picture.save(folder) for picture in pictures(group_runs(collect_runs([folder])[0]))]


def _draw_over_epsilon(axes: "Axes", methods: Sequence[Method], column: str) -> None:
    bands.draw(axes, methods, bands.by_column(epsilon.COLUMN, column))
    for method in methods:
        last = statistic([final(run.column(column)) for run in method.runs]).mean
        if last is not None and not any(epsilon.has_epsilon(run) for run in method.runs):
            axes.axhline(last, **style.line_style(method))
