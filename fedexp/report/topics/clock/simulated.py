"""The simulated clock: accuracy by its seconds, how long a round took, and the rounds of one run a method in a row."""

from collections.abc import Sequence

import numpy as np

from fedexp.maths.metric_names import metric_text, metric_title
from fedexp.report.draw import band, bands, style
from fedexp.report.draw.bands import PlotSpec
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import number_text, of_table
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run, shared_metric
from fedexp.report.topics import rounds

_BLOCKS = 300  # up to so many rounds of a run have a block each; beyond, a block is several rounds
_MOST = 40  # rows
_SPENT = PlotSpec(
    name="seconds_simulated", title="Simulated seconds of a round", vertical="Seconds", zero=True, log=True
)


def build_section(methods: Sequence[Method]) -> Section | None:
    """Of the methods for which a simulated clock ran."""
    timed = [method for method in methods if any(run.has_simulated_clock for run in method.runs)]
    if not timed:
        return None
    metric = shared_metric([run for method in timed for run in method.runs])
    spec = PlotSpec(
        name="learning_time",
        title=f"Test {metric_text(metric)} by simulated time",
        vertical=metric_title(metric),
        horizontal="Simulated seconds",
    )
    pictures = [
        bands.picture(spec, timed, band.by_column("sim_s", f"test_{metric}")),
        rounds.seconds_picture(_SPENT, timed, "sim_s"),
        timeline(timed[:_MOST]),
    ]
    return section("simulated-clock", "Simulated clock", f"{bands.NOTE} {rounds.CROSSES}", pictures)


def timeline(methods: Sequence[Method]) -> Picture:
    """A row for the first timed run of each method, a block for each round (or several), every other one paler."""
    title = "Rounds on the simulated clock"
    figure, axes = style.row_canvas(title, "Simulated seconds", len(methods), 1.1)
    most, rows = 1, []
    for row, method in enumerate(methods):
        run = next(run for run in method.runs if run.has_simulated_clock)
        begins, ends, rounds_per_block = blocks(run)
        count = len(run.rounds)
        rows.append([method.label, str(count), number_text(ends[-1]), number_text(ends[-1] / count)])
        most = max(most, rounds_per_block)
        gaps = np.full(len(begins), np.nan)
        odd = np.column_stack([begins, ends, gaps])[1::2].ravel()
        line_style = {"color": style.color(method), "linewidth": 12, "solid_capstyle": "butt", "gid": style.gid(method)}
        axes.plot([0, ends[-1]], [row, row], alpha=0.5, **line_style)
        axes.plot(odd, np.full(len(odd), row), **line_style)
    style.name_rows(axes, [method.label for method in methods])
    axes.set_xlim(left=0)
    several = f", of the longest runs {most}" if most > 1 else ""
    caption = f"The first run of each method; a block is a round{several}."
    data = of_table(Grid(("method", "rounds", "simulated s", "s/round"), rows))
    return Picture(
        name="timeline", title=title, figure=figure, data=data, caption=caption, methods=methods, legend=False
    )


def blocks(run: Run) -> tuple[np.ndarray, np.ndarray, int]:
    """Starts `[n]` and ends `[n]` of the blocks in seconds, and how many rounds a block has."""
    _, ends = band.by_round("sim_s")(run)
    rounds_per_block = -(-len(ends) // _BLOCKS)
    ends = np.append(ends[rounds_per_block - 1 : -1 : rounds_per_block], ends[-1])
    return np.concatenate([[0.0], ends[:-1]]), ends, rounds_per_block
