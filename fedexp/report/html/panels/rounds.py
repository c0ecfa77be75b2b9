"""What a round costs on the computer that ran it, stage by stage, and how many clients took part in it."""

from collections.abc import Sequence

import numpy as np

from fedexp.report.convergence import share
from fedexp.report.html import bars, plot
from fedexp.report.html.panels.learning import by_round
from fedexp.report.html.section import Section, side_by_side
from fedexp.report.html.svg import short
from fedexp.report.html.table import table
from fedexp.report.markup import Grid
from fedexp.report.measures import each_round, statistic
from fedexp.report.methods import Method
from fedexp.report.runs import Run
from fedexp.report.seconds import each

STAGES = ("select", "train", "aggregate", "evaluate")
_DRAWN = 40  # bars; of more methods the table alone
_NOTE = (
    "Seconds of a round on the host's clock, the mean over rounds and seeds; other is what the host's clock counted "
    "beyond the four stages (files, an evaluation that overlaps the next training counts less)."
)


def section(methods: Sequence[Method]) -> Section | None:
    """Stages, seconds over the rounds, participants, and the share of rounds whose Shapley values converged."""
    seconds = plot.Axes(title="Seconds of a round (host)", horizontal="Round", vertical="Seconds", zero=True, log=True)
    took = plot.Axes(title="Participants of a round", horizontal="Round", vertical="Clients that took part", zero=True)
    figures = [
        plot.draw(seconds, methods, lambda run: each(run, "host_s")),
        plot.draw(took, methods, lambda run: by_round(run, "participants")),
    ]
    body = _stages(methods) + side_by_side(figures) + _converged(methods)
    return Section("rounds", "Stages and rounds", body, _NOTE) if body else None


def profile(method: Method) -> list[float] | None:
    """Mean seconds of a round in each stage and beyond them; None where no stage was timed."""
    own = [_stage_seconds(run) for run in method.runs]
    known = np.array([line for line in own if line is not None])
    return known.mean(axis=0).tolist() if len(known) else None


def _stage_seconds(run: Run) -> list[float] | None:
    columns = [run.column(f"{stage}_s") for stage in STAGES]
    if all(np.isnan(column).all() for column in columns):
        return None
    means = [float(np.nansum(column)) / len(run.rounds) for column in columns]
    host = each_round(run, "host_s")
    return [*means, max(0.0, (host or 0.0) - sum(means))]


def _stages(methods: Sequence[Method]) -> str:
    found = [(method, line) for method in methods if (line := profile(method)) is not None]
    if not found:
        return ""
    names = [*STAGES, "other"]
    drawn = [bars.Bar(method.label, line, f"{short(sum(line), 3)} s") for method, line in found]
    picture = bars.draw("Seconds of a round by stage", "Seconds (host)", drawn, names) if len(found) <= _DRAWN else ""
    rows = [[method.label, *(short(part, 3) for part in (*line, sum(line)))] for method, line in found]
    return picture + table(Grid(("method", *(f"{name} s" for name in names), "sum s"), rows), "Seconds of a round")


def _converged(methods: Sequence[Method]) -> str:
    found = [(method, statistic([share(run) for run in method.runs]).mean) for method in methods]
    drawn = [bars.Bar(method.label, [mean], f"{mean:.0%}") for method, mean in found if mean is not None]
    title = "Rounds whose Shapley values converged"
    return bars.draw(title, "Share of rounds", drawn, ["converged"], 1.0) if 0 < len(drawn) <= _DRAWN else ""
