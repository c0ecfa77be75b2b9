"""Learning curves: everything of metrics.csv that says how good the models are, over the rounds."""

from collections.abc import Sequence

from fedexp.report import bands
from fedexp.report.bands import Lines
from fedexp.report.methods import Method
from fedexp.report.runs import Run
from fedexp.report.section import Section, section

_ACCURACY, _LOSS = "Accuracy", "Mean loss of an example"
_CURVES = {
    "test_accuracy": Lines(name="learning", title="Test accuracy", vertical=_ACCURACY, tab="Test"),
    "test_loss": Lines(name="learning_loss", title="Test loss", vertical=_LOSS, log=True, tab="Test"),
    "validation_accuracy": Lines(name="validation", title="Validation accuracy", vertical=_ACCURACY, tab="Validation"),
    "validation_loss": Lines(
        name="validation_loss", title="Validation loss", vertical=_LOSS, log=True, tab="Validation"
    ),
    "train_loss": Lines(name="training_loss", title="Training loss", vertical=_LOSS, log=True, tab="Training"),
}
_ELSEWHERE = ("round", "participants", "examples", "mb_down", "mb_up", "fleet.seconds")  # shown by other sections
_MOST = 6  # further columns


def panel(methods: Sequence[Method]) -> Section | None:
    """Accuracies and losses under tabs, and further columns of metrics.csv."""
    more = {
        column: Lines(name=f"measure_{number}", title=column, vertical="", log="loss" in column, tab="Further measures")
        for number, column in enumerate(further(methods), start=1)
    }
    drawn = [bands.picture(lines, methods, bands.by_round(column)) for column, lines in (_CURVES | more).items()]
    return section("learning", "Learning curves", bands.NOTE, drawn)


def further(methods: Sequence[Method]) -> list[str]:
    """Columns of other numbers that vary in some run, in the order in which they appear."""
    runs = [run for method in methods for run in method.runs]
    names = dict.fromkeys(str(name) for run in runs for name in run.metrics)
    free = [name for name in names if name not in (*_CURVES, *_ELSEWHERE) and _open(name)]
    return [name for name in free if any(_varies(run, name) for run in runs)][:_MOST]


def _open(name: str) -> bool:
    return not name.endswith("_s") and not name.startswith("privacy.")


def _varies(run: Run, name: str) -> bool:
    _, values = bands.by_round(name)(run)
    return len(values) > 1 and bool(values.min() < values.max())
