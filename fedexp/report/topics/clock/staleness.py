"""Clients that train on while the server steps: when each trained, and how old its upload was.

A bar of the timeline is a client from the moment in which it began to that in which its upload arrived; the stronger,
the more steps the server took meanwhile. Lines are steps of the server.
"""

from collections.abc import Sequence

import numpy as np

from fedexp.files import run_tables
from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData, number_text, of_table
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run
from fedexp.report.read.site_names import label, names_by_client

COLUMNS = ("round", "client", "started_s", "arrived_s", "staleness")
_METHODS = 3  # with a timeline each
_ARRIVALS, _CLIENTS = 200, 20  # of a timeline: the first so many uploads, of at most so many clients
_PALEST = 0.4  # opacity of a fresh upload's bar
_STEPS = 120  # up to so many steps have a line
_NOTE = (
    "Staleness: how many steps the server took while a client trained. Timelines are of the first run of each method "
    "and show its beginning."
)


def build_section(methods: Sequence[Method]) -> Section | None:
    """Of the methods whose clients train on while the server steps."""
    overlapping = [method for method in methods if "pacing.staleness" in method.runs[0].metrics]
    uploads = {method: [(run, table) for run in method.runs if len(table := arrivals(run))] for method in overlapping}
    arriving = [method for method in overlapping if uploads[method]]
    if not arriving:
        return None
    ages = [np.concatenate([table[:, 4] for _, table in uploads[method]]) for method in arriving]
    timelines = [_timeline(method, *uploads[method][0]) for method in arriving[:_METHODS]]
    return section("staleness", "Staleness", _NOTE, [_histogram(arriving, ages), *timelines])


def arrivals(run: Run) -> np.ndarray:
    """Round, client, beginning, arrival and staleness of each upload of a run, float64 `[uploads, 5]`."""
    table = run_tables.read_frame(run.folder / "clients.csv")
    if not len(table) or any(name not in table for name in COLUMNS):
        return np.zeros((0, len(COLUMNS)))
    return table[list(COLUMNS)].to_numpy(dtype=np.float64)


def shares(ages: np.ndarray) -> np.ndarray:
    """The share of the uploads `[uploads]` of each age from 0 to the greatest."""
    return np.bincount(ages.astype(np.int64)) / len(ages)


def _histogram(methods: Sequence[Method], ages: Sequence[np.ndarray]) -> Picture:
    title = "Staleness of uploads"
    figure, axes = style.canvas(title, "Steps of the server since the client began", "Share of uploads")
    for method, values in zip(methods, ages, strict=True):
        share = shares(values)
        axes.step(np.arange(len(share) + 1) - 0.5, np.append(share, 0.0), where="post", **style.line_style(method))
    axes.set_ylim(bottom=0)
    style.integer_ticks(axes.xaxis)
    rows = [
        [method.label, number_text(values.mean()), number_text(np.median(values)), number_text(values.max())]
        for method, values in zip(methods, ages, strict=True)
    ]
    data = of_table(Grid(("method", "mean", "median", "greatest"), rows))
    return Picture(name="staleness", title=title, figure=figure, data=data, methods=methods)


def _timeline(method: Method, run: Run, table: np.ndarray) -> Picture:
    first = table[np.argsort(table[:, 3], kind="stable")][:_ARRIVALS]
    clients = np.unique(first[:, 1])[:_CLIENTS]
    bars = first[np.isin(first[:, 1], clients)]
    end_s = float(bars[:, 3].max(initial=0.0))
    title = f"Clients over simulated time: {method.label}"
    figure, axes = style.row_canvas(title, "Simulated seconds", len(clients), 1.3)
    steps = run.column("sim_s")
    for moment in steps[steps <= end_s][:_STEPS]:
        axes.axvline(moment, color=style.RULE, linewidth=0.8, zorder=0)
    greatest = float(bars[:, 4].max(initial=0.0))
    rows = np.searchsorted(clients, bars[:, 1])
    hue = style.color(method)
    colors = [(*_rgb(hue), value) for value in _PALEST + (1 - _PALEST) * bars[:, 4] / max(1.0, greatest)]
    look = {"height": 0.7, "color": colors, "edgecolor": hue, "linewidth": 0.8, "gid": style.gid(method)}
    axes.barh(rows, bars[:, 3] - bars[:, 2], left=bars[:, 2], **look)
    names = names_by_client(run.folder / "federation.csv")
    style.name_rows(axes, [label(int(client), names) for client in clients])
    axes.set_xlim(0, end_s)
    axes.set_ylabel("Client")
    stalest = f"the strongest bar an upload of {_count(greatest, 'step')} ago" if greatest else "none is stale"
    caption = f"The palest bar is a fresh upload, {stalest}; lines are steps."
    name = f"clients_over_time_{method.position}"
    return Picture(name=name, title=title, figure=figure, data=_bars_data(bars, names), caption=caption, legend=False)


def _bars_data(bars: np.ndarray, names: dict[int, str]) -> PictureData:
    headings = ("client", "step", "began, s", "arrived, s", "staleness")
    rows = [
        [label(int(client), names), f"{number:.0f}", number_text(began), number_text(arrived), f"{age:.0f}"]
        for number, client, began, arrived, age in bars.tolist()
    ]
    clients = _count(len(np.unique(bars[:, 1])), "client")
    text = f"{_count(len(bars), 'upload')} of {clients}, on average {_count(bars[:, 4].mean(), 'step')} old."
    return of_table(Grid(headings, rows), "uploads", text)


def _count(number: float, word: str) -> str:
    return f"{number_text(number)} {word}{'' if number == 1 else 's'}"


def _rgb(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return red, green, blue
