"""How often each client took part: its density over the clients, by rank, and client by client where they fit."""

from collections.abc import Sequence

import numpy as np

from fedexp.report.draw import band, bands, heatmap, style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import enumerate_methods, number_text, of_table
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run
from fedexp.report.read.site_names import label, shared_names

_POINTS = 200
_QUARTILES = (0, 0.25, 0.5, 0.75, 1)
_CLIENTS, _METHODS = 120, 40  # of a map of clients by methods
_NAMED = 30  # up to so many clients have their names written out
_NOTE = (
    "The number of rounds in which a client took part. Kernel density (Gaussian, Scott's bandwidth): the clients of "
    "all seeds pooled, cut at 0; a vertical line where all took part equally often. By rank: the clients of each run "
    "sorted, the most selected first, so that a flat line is an even selection."
)
_RANKS = bands.PlotSpec(
    name="selections_by_rank",
    title="Selections by rank",
    horizontal="Rank of the client",
    vertical="Rounds",
    zero=True,
)


def build_section(methods: Sequence[Method]) -> Section | None:
    """Of the methods whose runs have clients.csv, but for central training, in which nobody is selected."""
    federated = [method for method in methods if method.runs[0].config.get("scenario.training") != "central"]
    recorded_methods = [method for method in federated if any(run.selections.any() for run in method.runs)]
    if not recorded_methods:
        return None
    pictures = [
        _densities(recorded_methods),
        bands.picture(_RANKS, recorded_methods, by_rank),
        _client_map(recorded_methods),
    ]
    return section("selections", "Selections", _NOTE, pictures)


def density(counts: np.ndarray) -> band.Curve | None:
    """Positions `[n]` from 0 up, and the density `[n]` of the counts there; None if all counts are equal."""
    if len(counts) < 2 or counts.min() == counts.max():
        return None
    width = float(counts.std(ddof=1)) * len(counts) ** -0.2
    x = np.linspace(max(0.0, counts.min() - 3 * width), counts.max() + 3 * width, _POINTS)
    values, times = np.unique(counts, return_counts=True)
    bells = np.exp(-0.5 * ((x[:, None] - values) / width) ** 2)
    return x, bells @ times / (len(counts) * width * np.sqrt(2 * np.pi))


def by_rank(run: Run) -> band.Curve:
    """Ranks from 1, and the selections of the client of that rank."""
    counts = np.sort(run.selections)[::-1].astype(float) if run.selections.any() else np.zeros(0)
    return np.arange(1, len(counts) + 1, dtype=float), counts


def mean_selections(method: Method) -> np.ndarray:
    """The mean over the runs for each client, `[N]`, NaN for clients that a run does not have."""
    most = max(len(run.selections) for run in method.runs)
    counts = np.full((len(method.runs), most), np.nan)
    for row, run in enumerate(method.runs):
        counts[row, : len(run.selections)] = run.selections
    return np.nanmean(counts, axis=0)


def _densities(methods: Sequence[Method]) -> Picture:
    title = "Selections of a client"
    figure, axes = style.canvas(title, "Rounds in which a client took part", "Density over clients")
    for method in methods:
        counts = np.concatenate([run.selections for run in method.runs])
        curve, line_style = density(counts), style.line_style(method, len(methods) > style.CROWD)
        if curve is None:
            axes.axvline(counts[0], **line_style)
        else:
            axes.plot(*curve, **line_style)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    style.integer_ticks(axes.xaxis)
    data = of_table(_quantiles(methods))
    return Picture(name="selections", title=title, figure=figure, data=data, methods=methods)


def _quantiles(methods: Sequence[Method]) -> Grid:
    """How often the clients of each method took part: the least often, the quartiles, the most often."""
    rows = []
    for method in methods:
        counts = np.concatenate([run.selections for run in method.runs])
        rows.append([method.label, *(number_text(value) for value in np.quantile(counts, _QUARTILES))])
    return Grid(("method", "minimum", "lower quartile", "median", "upper quartile", "maximum"), rows)


def _client_map(methods: Sequence[Method]) -> Picture | None:
    means = [mean_selections(method) for method in methods]
    clients = max(map(len, means))
    if clients > _CLIENTS or len(methods) > _METHODS:
        return None
    values = np.full((len(means), clients), np.nan)
    for row, client_means in enumerate(means):
        values[row, : len(client_means)] = client_means
    title = "Rounds in which each client took part"
    figure, axes = style.row_canvas(title, "Client", len(methods), 1.3)
    heatmap.draw_cells(figure, axes, values, "Rounds")
    style.name_rows(axes, [method.label for method in methods])
    names = shared_names([run.folder for method in methods for run in method.runs])
    if len(names) == clients <= _NAMED:
        style.name_columns(axes, [label(client, names) for client in range(clients)])
    else:
        style.integer_ticks(axes.xaxis)
    rows = [
        [label(client, names), *(number_text(value) if np.isfinite(value) else "-" for value in column)]
        for client, column in enumerate(values.T)
    ]
    text = enumerate_methods(
        [
            f"{method.label} from {number_text(means_of.min())} to {number_text(means_of.max())} rounds"
            for method, means_of in zip(methods, means, strict=True)
        ]
    )
    data = of_table(Grid(("client", *(method.label for method in methods)), rows), "clients", text)
    return Picture(name="selections_map", title=title, figure=figure, data=data, caption="The mean over the seeds.")
