"""The privacy ledger: epsilon and accuracy, and what each method promised at its end.

What privacy costs is the accuracy over rounds with epsilon above them, and over epsilon where that is another picture.
Methods whose ledgers agree round by round share one axis of epsilons. Where ledgers differ no such axis is true for
all of them, and a second panel has the accuracy over the epsilon that was spent. Methods without a finite epsilon lie
there as horizontal lines at their last accuracy.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.files import run_tables
from fedexp.maths.metric_names import metric_text, metric_title
from fedexp.report.draw import band, bands, curve_data, end_labels, style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read import epsilon
from fedexp.report.read.measures import statistic
from fedexp.report.read.methods import Method, group_runs
from fedexp.report.read.one_at_a_time import one_key_variations
from fedexp.report.read.runs import collect_runs, find_run_folders, shared_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ENTRIES = {
    "epsilon_pld": "epsilon (PLD)",
    "epsilon_rdp": "epsilon (RDP)",
    "delta": "delta",
    "noise_multiplier": "noise multiplier",
}
_NOTE = (
    "Epsilon is that of the federation, spent up to a round, from the privacy loss distribution (PLD); the table has "
    "the accountant of Rényi divergences (RDP) beside it. Epsilon stands above the rounds where all ledgers agree; "
    "else a second drawing shows the accuracy by the epsilon spent, with methods without one as horizontal lines."
)


def build_section(methods: Sequence[Method]) -> Section | None:
    """Of the methods with a finite epsilon, beside those without one."""
    private_methods = [method for method in methods if any(epsilon.has_epsilon(run) for run in method.runs)]
    if not private_methods:
        return None
    name = epsilon.axis_label([run for method in private_methods for run in method.runs if epsilon.has_epsilon(run)])
    spec = bands.PlotSpec(name="epsilon_spent", title="Epsilon by round", vertical=name, zero=True)
    spent = bands.picture(spec, private_methods, band.by_round(epsilon.COLUMN))
    pictures = [spent, *accuracy_pictures(methods)]
    return section(
        "privacy",
        "Privacy ledger",
        f"{_NOTE} {bands.NOTE}",
        pictures,
        [*_ledger_table(private_methods), *_promises_table(private_methods)],
    )


def accuracy_pictures(methods: Sequence[Method]) -> Iterator[Picture]:
    """One for each key if the methods vary one at a time, with colours and a legend of its own, else one for all."""
    variations = one_key_variations(methods)
    for variation in variations:
        if (drawn := accuracy_figure(variation.methods)) is not None:
            figure, data = drawn
            style.add_legend(figure, variation.methods)
            key = re.sub(r"\W", "_", variation.key)
            title = f"Privacy and accuracy by {variation.key}"
            yield Picture(name=f"epsilon_{key}", title=title, figure=figure, data=data, caption=f"By {variation.key}.")
    if not variations and (drawn := accuracy_figure(methods)) is not None:
        figure, data = drawn
        yield Picture(name="epsilon", title="Privacy and accuracy", figure=figure, data=data, methods=methods)


def accuracy_figure(methods: Sequence[Method]) -> "tuple[Figure, PictureData] | None":
    """One panel where the ledgers agree, else two, with the numbers of the first.

    None where nothing is protected, or nothing was tested.
    """
    from matplotlib.figure import Figure

    runs = [run for method in methods for run in method.runs if epsilon.has_epsilon(run)]
    if not runs:
        return None
    course = epsilon.shared_epsilons(runs)
    drawn = Figure(figsize=(6.2 if course else 9.6, 3.8), layout="constrained")
    round_axes, *epsilon_axes = drawn.subplots(1, 1 if course else 2, sharey=True, squeeze=False)[0]
    metric = shared_metric([run for method in methods for run in method.runs])
    title = f"Test {metric_text(metric)} by round"
    drawn_bands = bands.draw(round_axes, methods, band.by_round(f"test_{metric}"))
    if not drawn_bands:
        return None
    end_labels.draw(round_axes, drawn_bands)
    round_axes.set(title=title, xlabel="Round", ylabel=metric_title(metric))
    style.integer_ticks(round_axes.xaxis)
    if course:
        epsilon.add_top_axis(round_axes, *course, epsilon.axis_label(runs))
    for axes in epsilon_axes:
        _draw_over_epsilon(axes, methods, f"test_{metric}")
        axes.set(title=f"Test {metric_text(metric)} by epsilon spent", xlabel=epsilon.axis_label(runs))
    return drawn, curve_data.describe(drawn_bands, "Round", title)


@style.style()
def conclude(folder: Path) -> list[Path]:
    """Writes the figures of a sweep into its folder, if a ledger was kept in it; returns their files."""
    if not any(epsilon.COLUMN in run_tables.read_frame(run / "metrics.csv") for run in find_run_folders(folder)):
        return []
    return [
        path for picture in accuracy_pictures(group_runs(collect_runs([folder])[0])) for path in picture.save(folder)
    ]


def _ledger_table(methods: Sequence[Method]) -> list[tuple[str, Grid]]:
    columns = {name: [_mean(method, entry) for method in methods] for entry, name in _ENTRIES.items()}
    shown_columns = {name: column for name, column in columns.items() if any(cell != "-" for cell in column)}
    rows = list(zip([method.label for method in methods], *shown_columns.values(), strict=True))
    return (
        [("The ledger of each run by itself, mean over finished seeds", Grid(("method", *shown_columns), rows))]
        if shown_columns
        else []
    )


def _mean(method: Method, entry: str) -> str:
    mean = statistic([((run.summary or {}).get("privacy") or {}).get(entry) for run in method.runs]).mean
    return "-" if mean is None else f"{mean:.4g}"


def _promises_table(methods: Sequence[Method]) -> list[tuple[str, Grid]]:
    """What the runs say of themselves in words, the same words once."""
    labels_by_promise: dict[str, dict[str, None]] = {}
    for method in methods:
        for run in method.runs:
            if promise := ((run.summary or {}).get("privacy") or {}).get("promise"):
                labels_by_promise.setdefault(str(promise), {})[method.label] = None
    rows = [(promise, "; ".join(labels)) for promise, labels in labels_by_promise.items()]
    return [("The promises in words", Grid(("promise", "methods"), rows, 2))] if rows else []


def _draw_over_epsilon(axes: "Axes", methods: Sequence[Method], column: str) -> None:
    bands.draw(axes, methods, band.by_column(epsilon.COLUMN, column))
    for method in methods:
        last = statistic([run.final(column) for run in method.runs]).mean
        if last is not None and not any(epsilon.has_epsilon(run) for run in method.runs):
            axes.axhline(last, **style.line_style(method))
