"""What a round costs on the computer that ran it, stage by stage, and how many clients took part in it."""

from collections.abc import Sequence

import numpy as np

from fedexp.report.draw import bands, style
from fedexp.report.draw.bands import PlotSpec
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.measures import mean_per_round
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run
from fedexp.report.topics import convergence, seconds

STAGES = ("select", "train", "aggregate", "evaluate")
_DRAWN = 40  # bars; of more methods the table alone
_NOTE = (
    "Seconds of a round on the host's clock, the mean over rounds and seeds; other is what the host's clock counted "
    f"beyond the four stages (files, an evaluation that overlaps the next training counts less). {seconds.CROSSES}"
)
_SECONDS = PlotSpec(name="seconds_host", title="Seconds of a round (host)", vertical="Seconds", zero=True, log=True)
_PARTICIPANTS = PlotSpec(
    name="participants", title="Participants of a round", vertical="Clients that took part", zero=True
)


def build_section(methods: Sequence[Method]) -> Section | None:
    """Stages, seconds over the rounds, participants, and the share of rounds whose Shapley values converged."""
    participants = bands.picture(_PARTICIPANTS, methods, bands.by_round("participants"))
    if participants is not None:
        style.integer_ticks(participants.figure.axes[0].yaxis)
    profiles = [(method, line) for method in methods if (line := stage_profile(method)) is not None]
    pictures = [
        _stages_picture(profiles) if 0 < len(profiles) <= _DRAWN else None,
        seconds.picture(_SECONDS, methods, "host_s"),
        participants,
        convergence.picture(methods),
    ]
    return section("rounds", "Stages and rounds", _NOTE, pictures, _table(profiles) if profiles else ())


def stage_profile(method: Method) -> list[float] | None:
    """Mean seconds of a round in each stage and beyond them; None where no stage was timed."""
    per_run = [_stage_seconds(run) for run in method.runs]
    measured = np.array([line for line in per_run if line is not None])
    return measured.mean(axis=0).tolist() if len(measured) else None


def _stage_seconds(run: Run) -> list[float] | None:
    columns = [run.column(f"{stage}_s") for stage in STAGES]
    if all(np.isnan(column).all() for column in columns):
        return None
    means = [float(np.nansum(column)) / len(run.rounds) for column in columns]
    host = mean_per_round(run, "host_s")
    return [*means, max(0.0, (host or 0.0) - sum(means))]


def _stages_picture(profiles: Sequence[tuple[Method, list[float]]]) -> Picture:
    title, rows = "Seconds of a round by stage", range(len(profiles))
    figure, axes = style.row_canvas(title, "Seconds (host)", len(profiles), 1.5)
    begin = np.zeros(len(profiles))
    for number, stage in enumerate((*STAGES, "other")):
        length = np.array([line[number] for _, line in profiles])
        axes.barh(rows, length, left=begin, height=0.65, color=style.COLORS[number], label=stage)
        begin += length
    style.name_rows(axes, [method.label for method, _ in profiles])
    figure.legend(loc="outside lower center", ncols=5)
    return Picture(name="stages", title=title, figure=figure)


def _table(profiles: Sequence[tuple[Method, list[float]]]) -> list[tuple[str, Grid]]:
    names = ("method", *(f"{name} s" for name in (*STAGES, "other", "sum")))
    rows = [[method.label, *(f"{part:.3g}" for part in (*line, sum(line)))] for method, line in profiles]
    return [("Seconds of a round", Grid(names, rows))]
