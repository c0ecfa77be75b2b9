"""What a round costs, stage by stage, how many clients took part in it, and whether Shapley values converged."""

from collections.abc import Callable, Sequence

import numpy as np

from fedexp.report.draw import band, bands, style
from fedexp.report.draw.bands import PlotSpec
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import number_text, of_table
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.measures import mean_per_round, statistic
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run

CROSSES = "A cross, if any, marks a round of one seed in which the Shapley values did not converge."
STAGES = ("select", "train", "aggregate", "evaluate")
_CONVERGED = "selector.converged"
_MOST = 40  # bars; of more methods the table alone
_NOTE = (
    "Seconds of a round on the host's clock, the mean over rounds and seeds; other is what the host's clock counted "
    "beyond the four stages, such as files. host s/round is that of the results: less than the parts together where an "
    f"evaluation overlaps the next training. {CROSSES}"
)
_SECONDS = PlotSpec(name="seconds_host", title="Seconds of a round (host)", vertical="Seconds", zero=True, log=True)
_PARTICIPANTS = PlotSpec(
    name="participants", title="Participants of a round", vertical="Clients that took part", zero=True
)


def build_section(methods: Sequence[Method]) -> Section | None:
    """Stages, seconds over the rounds, participants, and the share of rounds whose Shapley values converged."""
    participants = bands.picture(_PARTICIPANTS, methods, band.by_round("participants"))
    if participants is not None:
        style.integer_ticks(participants.figure.axes[0].yaxis)
    profiles = [(method, line) for method in methods if (line := stage_profile(method)) is not None]
    pictures = [
        _stages_picture(profiles) if 0 < len(profiles) <= _MOST else None,
        seconds_picture(_SECONDS, methods, "host_s"),
        participants,
        convergence_picture(methods),
    ]
    tables = [("Seconds of a round", _table(profiles))] if len(profiles) > _MOST else []
    return section("rounds", "Stages and rounds", _NOTE, pictures, tables)


def stage_profile(method: Method) -> list[float] | None:
    """Mean seconds of a round in each stage and beyond them; None where no stage was timed."""
    per_run = [_stage_seconds(run) for run in method.runs]
    measured = np.array([line for line in per_run if line is not None])
    return measured.mean(axis=0).tolist() if len(measured) else None


def seconds_picture(spec: PlotSpec, methods: Sequence[Method], column: str) -> Picture | None:
    """A band for each method of what a cumulative column of seconds grew by; a cross where a run did not converge."""
    drawn = bands.picture(spec, methods, seconds_by_round(column))
    for method in drawn.methods if drawn else ():
        for run in method.runs:
            rounds, spent = seconds_by_round(column)(run)
            missed = np.isin(rounds, run.rounds[run.column(_CONVERGED) == 0])
            if drawn and missed.any():
                line_style = {"color": style.color(method), "markersize": 5, "gid": style.gid(method)}
                drawn.figure.axes[0].plot(rounds[missed], spent[missed], "x", **line_style)
    return drawn


def seconds_by_round(column: str) -> Callable[[Run], band.Curve]:
    """Rounds, and what a cumulative column of seconds grew by in each; the first counts from zero."""
    return lambda run: band.finite_points(run.rounds.astype(float), np.diff(run.column(column), prepend=0.0))


def converged_share(run: Run) -> float | None:
    """The share of converged rounds among those that say so; None where no round does."""
    converged = run.column(_CONVERGED)
    converged = converged[~np.isnan(converged)]
    return float(converged.mean()) if len(converged) else None


def convergence_picture(methods: Sequence[Method]) -> Picture | None:
    """A bar a method, the mean over its seeds; a dot a seed."""
    shares = [
        (method, [value for run in method.runs if (value := converged_share(run)) is not None]) for method in methods
    ]
    shares = [(method, values) for method, values in shares if values]
    if not 0 < len(shares) <= _MOST:
        return None
    caption = "The bar is the mean over the seeds, a dot is a seed."
    title = "Rounds whose Shapley values converged"
    figure, axes = style.row_canvas(title, "Share of rounds", len(shares), 1.2)
    for position, (method, values) in enumerate(shares):
        mean, name = sum(values) / len(values), style.gid(method)
        axes.barh(position, mean, height=0.6, color=style.color(method), alpha=0.85, gid=name)
        axes.text(1.02, position, f"{mean:.0%}", va="center", fontsize=9, gid=name)
        if len(values) > 1:
            dots = {"color": style.PAPER, "markeredgecolor": style.INK, "markersize": 5}
            axes.plot(values, [position] * len(values), "o", gid=name, **dots)
    style.name_rows(axes, [method.label for method, _ in shares])
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    drawn = [method for method, _ in shares]
    rows = [[method.label, f"{sum(values) / len(values):.1%}", str(len(values))] for method, values in shares]
    data = of_table(Grid(("method", "converged", "seeds"), rows))
    return Picture(
        name="convergence", title=title, figure=figure, data=data, caption=caption, methods=drawn, legend=False
    )


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
    return Picture(name="stages", title=title, figure=figure, data=of_table(_table(profiles)))


def _table(profiles: Sequence[tuple[Method, list[float]]]) -> Grid:
    names = ("method", *(f"{name} s/round" for name in (*STAGES, "other", "host")))
    rows = []
    for method, line in profiles:
        host = statistic([mean_per_round(run, "host_s") for run in method.runs]).mean
        rows.append([method.label, *map(number_text, line), "-" if host is None else number_text(host)])
    return Grid(names, rows)
