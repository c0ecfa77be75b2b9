"""Learning curves: everything of metrics.csv that says how good the models are, over the rounds."""

from collections.abc import Sequence

from fedexp.report.bands import Curve, known
from fedexp.report.html import plot
from fedexp.report.html.section import Section, side_by_side, tabs
from fedexp.report.methods import Method
from fedexp.report.runs import Run

_LOSS = "Mean loss of an example"
_TABS = {
    "Test": (("test_accuracy", "Test accuracy", "Accuracy"), ("test_loss", "Test loss", _LOSS)),
    "Validation": (
        ("validation_accuracy", "Validation accuracy", "Accuracy"),
        ("validation_loss", "Validation loss", _LOSS),
    ),
    "Training": (("train_loss", "Training loss", _LOSS),),
}
_ELSEWHERE = (
    "participants",
    "examples",
    "mb_down",
    "mb_up",
    "host_s",
    "sim_s",
    "fleet.seconds",
    "round",
)  # shown by other parts
_MOST = 6  # further columns
NOTE = (
    "The line is the mean over the seeds and the band reaches from the least to the greatest of them; the line is "
    "dotted where not all of the seeds got so far."
)


def section(methods: Sequence[Method]) -> Section | None:
    """Accuracies and losses under tabs, and further columns of the parts."""
    panes = [(name, side_by_side([_figure(methods, *one) for one in columns])) for name, columns in _TABS.items()]
    panes.append(("Further measures", side_by_side([_figure(methods, name, name, name) for name in further(methods)])))
    body = tabs(panes)
    return Section("learning", "Learning curves", body, NOTE) if body else None


def further(methods: Sequence[Method]) -> list[str]:
    """Columns of other numbers that vary in some run, in the order in which they appear."""
    shown = {name for columns in _TABS.values() for name, _, _ in columns}
    runs = [run for method in methods for run in method.runs]
    names = dict.fromkeys(str(name) for run in runs for name in run.metrics)
    free = [name for name in names if name not in shown and name not in _ELSEWHERE and _open(name)]
    return [name for name in free if any(_varies(run, name) for run in runs)][:_MOST]


def _open(name: str) -> bool:
    return not name.endswith("_s") and not name.startswith("privacy.")


def _varies(run: Run, name: str) -> bool:
    _, values = by_round(run, name)
    return len(values) > 1 and bool(values.min() < values.max())


def by_round(run: Run, column: str) -> Curve:
    """A column over the rounds."""
    return known(run.rounds.astype(float), run.column(column))


def _figure(methods: Sequence[Method], column: str, title: str, vertical: str) -> str:
    axes = plot.Axes(title=title, horizontal="Round", vertical=vertical, log="loss" in column)
    return plot.draw(axes, methods, lambda run: by_round(run, column))
