"""Learning curves: everything of metrics.csv that says how good the models are, over the rounds."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fedexp.maths.metric_names import column_title, metric_text, metric_title
from fedexp.report.draw import band, bands
from fedexp.report.draw.band import Curve, finite_points
from fedexp.report.draw.bands import PlotSpec
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.methods import Method, options
from fedexp.report.read.runs import Run, shared_metric

_LOSS = "Mean loss of an example"
_CURVES = {
    "test_loss": PlotSpec(name="learning_loss", title="Test loss", vertical=_LOSS, log=True, tab="Test"),
    "validation_loss": PlotSpec(
        name="validation_loss", title="Validation loss", vertical=_LOSS, log=True, tab="Validation"
    ),
    "train_loss": PlotSpec(name="training_loss", title="Training loss", vertical=_LOSS, log=True, tab="Training"),
}
_OWN_COST = "Some local rules add a term to their cost (FedNTD, MOON): compare training losses of the same rule only."
_ELSEWHERE = ("round", "participants", "examples", "mb_down", "mb_up", "fleet.seconds")  # shown by other sections
_MOST = 6  # further columns
_TABS = ("Test", "Validation", "Training")


def build_section(methods: Sequence[Method]) -> Section | None:
    """Accuracies and losses under tabs, and further columns of metrics.csv."""
    metric = shared_metric([run for method in methods for run in method.runs])
    main = {
        f"{kind}_{metric}": PlotSpec(
            name=name, title=f"{tab} {metric_text(metric)}", vertical=metric_title(metric), tab=tab
        )
        for kind, name, tab in (("test", "learning", "Test"), ("validation", "validation", "Validation"))
    }
    further_specs = {
        column: PlotSpec(
            name=f"measure_{number}",
            title=(title := column_title(column, metric)),
            vertical=title,
            log="loss" in column,
            tab="Further measures",
        )
        for number, column in enumerate(further_columns(methods, (*main, *_CURVES)), start=1)
    }
    order = dict(sorted((main | _CURVES).items(), key=lambda pair: _TABS.index(pair[1].tab)))
    drawn = [_picture(spec, methods, column) for column, spec in (order | further_specs).items()]
    traffic = PlotSpec(
        name="learning_traffic",
        title=f"Test {metric_text(metric)} by megabytes sent",
        vertical=metric_title(metric),
        horizontal="Megabytes sent, down and up",
        tab="Traffic",
    )
    drawn.append(bands.picture(traffic, methods, over_traffic(f"test_{metric}")))
    return section("learning", "Learning curves", bands.NOTE, drawn)


def _picture(spec: PlotSpec, methods: Sequence[Method], column: str) -> Picture | None:
    picture = bands.picture(spec, methods, band.by_round(column))
    if picture is None or column != "train_loss":
        return picture
    rules = {options(method.runs[0]).get("local") for method in picture.methods}
    return replace(picture, caption=_OWN_COST) if len(rules) > 1 else picture


def over_traffic(column: str) -> Callable[[Run], Curve]:
    """A column of metrics.csv over the megabytes that all clients and the server have sent by then."""

    def curve(run: Run) -> Curve:
        exact = np.nancumsum(run.column("mb_down") + run.column("mb_up"))
        sent = np.array([float(f"{megabytes:.4g}") for megabytes in exact])  # so that equal budgets share a row
        return finite_points(sent if np.isfinite(run.column("mb_up")).any() else sent * np.nan, run.column(column))

    return curve


def further_columns(methods: Sequence[Method], drawn: Sequence[str]) -> list[str]:
    """Columns of numbers besides those drawn that vary in some run, in the order in which they appear."""
    runs = [run for method in methods for run in method.runs]
    names = dict.fromkeys(str(name) for run in runs for name in run.metrics)
    shown_elsewhere = {*drawn, *_ELSEWHERE}
    candidates = [name for name in names if name not in shown_elsewhere and not name.startswith("privacy.")]
    measures = [name for name in candidates if not name.endswith("_s")]
    return [name for name in measures if any(_varies(run, name) for run in runs)][:_MOST]


def _varies(run: Run, name: str) -> bool:
    _, values = band.by_round(name)(run)
    return len(values) > 1 and bool(values.min() < values.max())
