"""The simulated clock: accuracy by its seconds, how long a round took, and the rounds of one run a method in a row."""

from collections.abc import Sequence

import numpy as np

from fedexp.report.bands import known
from fedexp.report.html import plot, svg
from fedexp.report.html.figure import Figure
from fedexp.report.html.section import Section, side_by_side
from fedexp.report.methods import Method
from fedexp.report.runs import Run
from fedexp.report.seconds import each

_WIDTH, _ROW, _TOP, _BOTTOM = 640, 26, 6, 44
_BLOCKS = 300  # up to so many rounds of a run have a block each; beyond, a block is several rounds
_MOST = 40  # rows


def section(methods: Sequence[Method]) -> Section | None:
    """Of the methods for which a simulated clock ran."""
    timed = [method for method in methods if any(run.timed for run in method.runs)]
    if not timed:
        return None
    accuracy = plot.Axes(
        title="Test accuracy by simulated seconds", horizontal="Simulated seconds", vertical="Accuracy", whole=False
    )
    spent = plot.Axes(title="Simulated seconds of a round", horizontal="Round", vertical="Seconds", zero=True)
    figures = [
        plot.draw(accuracy, timed, lambda run: known(run.column("sim_s"), run.column("test_accuracy"))),
        plot.draw(spent, timed, lambda run: each(run, "sim_s")),
    ]
    return Section("simulated", "Simulated time", side_by_side(figures) + timeline(timed[:_MOST]))


def timeline(methods: Sequence[Method]) -> str:
    """A row for the first timed run of each method, a block for each round (or several)."""
    runs = [(method, next(run for run in method.runs if run.timed)) for method in methods]
    left = 12 + min(240.0, 7.2 * max(len(method.label) for method in methods))
    last = max(float(np.nanmax(run.column("sim_s"))) for _, run in runs)
    across, floor = svg.Scale(0.0, last or 1.0, left, _WIDTH - 16), _TOP + _ROW * len(runs)
    body = "".join(_row(method, run, across, _TOP + _ROW * row) for row, (method, run) in enumerate(runs))
    grid = "".join(
        f'<path class="grid" d="M{svg.one(float(across(tick)))} {_TOP}V{floor}"/>'
        + svg.label(float(across(tick)), floor + 16, svg.short(tick), "tick middle")
        for tick in svg.ticks(0.0, across.high, 6)
    )
    name = svg.label((left + _WIDTH) / 2, floor + _BOTTOM - 8, "Simulated seconds", "name middle")
    told = "; ".join(f"{method.label} {run.rounds[-1]} rounds" for method, run in runs)
    return Figure(
        caption="Rounds on the simulated clock, one run a method",
        spoken=f"Rounds on the simulated clock: {told}",
        width=_WIDTH,
        height=floor + _BOTTOM,
        body=grid + body + name,
        kind="bars",
    ).html()


def blocks(run: Run) -> tuple[np.ndarray, np.ndarray, int]:
    """Beginnings and ends of the blocks in seconds, and how many rounds a block is."""
    _, ends = known(run.rounds.astype(float), run.column("sim_s"))
    together = -(-len(ends) // _BLOCKS)
    ends = np.append(ends[together - 1 : -1 : together], ends[-1])
    return np.concatenate([[0.0], ends[:-1]]), ends, together


def _row(method: Method, run: Run, across: svg.Scale, top: float) -> str:
    begins, ends, together = blocks(run)
    lefts, rights = across(begins), across(ends)
    kind, drawn = f"c{method.position % 7}", []
    for parity in (0, 1):
        pairs = zip(lefts[parity::2].tolist(), rights[parity::2].tolist(), strict=True)
        boxes = svg.boxes([(left, top + 4, right - left, _ROW - 8) for left, right in pairs])
        drawn.append(f'<path class="block {kind}{" pale" if parity else ""}" d="{boxes}"/>')
    each_block = f", a block is {together} rounds" if together > 1 else ""
    seed = "" if run.seed is None else f", seed {run.seed}"
    told = svg.text(
        f"{method.label}{seed}: {run.rounds[-1]} rounds in {svg.short(float(ends[-1]))} simulated seconds{each_block}"
    )
    shown = method.label if len(method.label) <= 34 else f"{method.label[:33]}…"
    name = svg.label(across.start - 6, top + 17, shown, "tick end")
    return f'<g data-m="{method.position}"><title>{told}</title>{name}{"".join(drawn)}</g>'
