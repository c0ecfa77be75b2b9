"""The tables over methods: mean and standard deviation over seeds, as numbers and as texts.

Every quantity is in a file of full precision. A page shows a few columns a table, so that each fits the window: the
results, the rounds to a target, the seconds to a target; or the columns that were asked for.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from fedexp.maths.curve_metrics import higher_is_better
from fedexp.maths.metric_names import metric_title
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.quantity_names import COUNTS, decimals, heading, is_share, more_is_better
from fedexp.report.draw.statistic_text import cell_text
from fedexp.report.read.at_clients import site_scores
from fedexp.report.read.measures import (
    Numbers,
    Statistic,
    client_numbers,
    further_metrics,
    further_numbers,
    half_interval,
    host_numbers,
    simulated_numbers,
    statistic,
    thresholds,
)
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run, shared_metric
from fedexp.report.read.site_counts import site_counts
from fedexp.report.topics.chosen_columns import choose_columns

_PERCENT = 2  # decimals
_MOST_SITES = 100
ROUNDING = 1e-9  # sums of equal numbers differ by so much, relative to them
_TARGETS = {"RoA@": "Rounds to a target", "ToA@": "Seconds to a target"}


@dataclass(frozen=True)
class View:
    """What a page shows of the tables: chosen columns (all where None), shares in percent, intervals of the means."""

    columns: tuple[str, ...] | None = None
    percent: bool = False
    interval: bool = False
    lacking: tuple[str, ...] = ()  # columns that were asked for, of which no run has a number

    @property
    def spread(self) -> str:
        """What stands behind a mean and ±, in words."""
        kind = "half of Student's 95 % interval of the mean" if self.interval else "sample standard deviation"
        return f"{kind} over the seeds"


ALL = View()


@dataclass(frozen=True)
class Table:
    """One statistic a method and quantity; `empty` are the quantities of which no run has a number."""

    name: str
    title: str
    methods: Sequence[Method]
    rows: Sequence[dict[str, Statistic]]
    metric: str = "accuracy"
    view: View = ALL
    empty: Sequence[str] = ()

    def frame(self) -> pd.DataFrame:
        """Full precision: mean, std and count of each quantity in columns of their own."""
        lines = []
        for method, row in zip(self.methods, self.rows, strict=True):
            line = {"method": method.label, "runs": len(method.runs), "unfinished": method.unfinished_count}
            for name, value in row.items():
                line |= {f"{name} mean": value.mean, f"{name} std": value.std, f"{name} count": value.count}
            lines.append(line)
        return pd.DataFrame(lines)

    @property
    def quantities(self) -> list[str]:
        return list(self.rows[0])

    @property
    def columns(self) -> list[str]:
        """The columns that `--columns` may choose."""
        return self.quantities

    def grids(self) -> list[tuple[str, Grid]]:
        """Rounded texts for people under their titles."""
        if self.view.columns is not None:
            chosen = [name for name in self.view.columns if name in self.columns]
            return [(self.title, self._grid(chosen))] if chosen else []
        targets = {start: [name for name in self.quantities if name.startswith(start)] for start in _TARGETS}
        timed = {name for names in targets.values() for name in names}
        shown = [name for name in self.quantities if name not in timed and not self._is_constant(name)]
        grids = [(self.title, self._grid(shown))]
        grids += [(_TARGETS[start], self._grid(names)) for start, names in targets.items() if names]
        return grids

    def _is_constant(self, name: str) -> bool:
        """Whether it is a count that is the same in all runs of several methods, which the page's head tells."""
        return (
            name in COUNTS and len(self.rows) > 1 and len({(row[name].mean, row[name].std) for row in self.rows}) == 1
        )

    def _grid(self, quantities: Sequence[str]) -> Grid:
        lines = [
            [method.label, _seeds_text(method), *(self.cell(name, row[name]) for name in quantities)]
            for method, row in zip(self.methods, self.rows, strict=True)
        ]
        bold = {(row, column + 2) for column, name in enumerate(quantities) for row in self._best_rows(name)}
        return Grid(("method", "seeds", *map(self._heading, quantities)), lines, bold=frozenset(bold))

    def is_in_percent(self, name: str) -> bool:
        """Whether the page writes this quantity in percent, without the sign."""
        return self.view.percent and is_share(name)

    def _heading(self, name: str) -> str:
        return f"{heading(name)} %" if self.is_in_percent(name) else heading(name)

    def cell(self, name: str, value: Statistic) -> str:
        """A number as the page writes it; with `percent` chosen a share says its unit in the heading alone."""
        if self.view.interval:
            value = replace(value, std=half_interval(value))
        if not self.is_in_percent(name):
            return cell_text(value, decimals(name))
        parts = (None if part is None else 100 * part for part in (value.mean, value.std))
        mean, std = parts
        return cell_text(replace(value, mean=mean, std=std), _PERCENT)

    def _best_rows(self, name: str) -> list[int]:
        """The rows with the best mean of those all of whose runs have the number; none where all rows are the same."""
        higher = self._higher_is_better(name)
        means = {
            row: value.mean
            for row, line in enumerate(self.rows)
            if (value := line[name]).mean is not None and value.count == value.runs and math.isfinite(value.mean)
        }
        alike = len(means) == len(self.rows) and math.isclose(
            min(means.values()), max(means.values()), rel_tol=ROUNDING
        )
        if higher is None or alike or not means:
            return []
        best = max(means.values()) if higher else min(means.values())
        return [row for row, mean in means.items() if math.isclose(mean, best, rel_tol=ROUNDING)]

    def _higher_is_better(self, name: str) -> bool | None:
        return more_is_better(name, self.metric)


class SiteTable(Table):
    """The last value of the main metric a method and site, with a line a site for people."""

    @property
    def columns(self) -> list[str]:
        return []

    def grids(self) -> list[tuple[str, Grid]]:
        if self.view.columns is not None:
            return []
        quantity, counts = f"final {self.metric}", site_counts([run for method in self.methods for run in method.runs])
        lines = [
            [site, *(by_site.get(site, "-") for by_site in counts.values())]
            + [self.cell(quantity, row[site]) for row in self.rows]
            for site in self.quantities
        ]
        first = 1 + len(counts)
        bold = {(line, row + first) for line, site in enumerate(self.quantities) for row in self._best_rows(site)}
        corner = "site, in %" if self.view.percent and is_share(quantity) else "site"
        headings = (corner, *counts, *(method.label for method in self.methods))
        return [(self.title, Grid(headings, lines, bold=frozenset(bold)))]

    def _higher_is_better(self, name: str) -> bool | None:
        return higher_is_better(self.metric)


def make_tables(methods: Sequence[Method], view: View = ALL) -> list[Table]:
    """The table of every method; those of the methods measured at the clients, and of those with a simulated clock.

    Raises:
        ConfigError: a column was asked for that no table has.
    """
    roa, toa = thresholds(methods, "roa"), thresholds(methods, "toa")
    runs = [run for method in methods for run in method.runs]
    metric = shared_metric(runs)
    timed = [method for method in methods if all(run.has_simulated_clock for run in method.runs)]
    untimed = len(timed) < len(methods)
    hosts = toa if untimed else ()
    tables = [_table("results", "Results", methods, lambda run: host_numbers(run, metric, roa, hosts))]
    metrics = further_metrics(runs, metric)
    further = _table("metrics", "Further metrics", methods, lambda run: further_numbers(run, metrics))
    tables += [further] if further.quantities else []
    at_clients = _table("at_clients", "At the clients", methods, lambda run: client_numbers(run, metric))
    tables += [_without_repeats(at_clients)] if at_clients.quantities else []
    tables += _site_tables(methods, metric)
    if timed:
        tables.append(_table("simulated", "Simulated time", timed, lambda run: simulated_numbers(run, metric, toa)))
    known_view = view if view.columns is None else _known_view(view, view.columns, tables)
    return [replace(table, metric=metric, view=known_view) for table in tables]


def _known_view(view: View, wishes: Sequence[str], tables: Sequence[Table]) -> View:
    columns, lacking = choose_columns(
        wishes, [name for table in tables for name in table.columns], [name for table in tables for name in table.empty]
    )
    return replace(view, columns=columns, lacking=lacking)


def _seeds_text(method: Method) -> str:
    notes = [f"{method.unfinished_count} unfinished"] if method.unfinished_count else []
    notes += [f"{len(method.repeats)} repeated"] if method.repeats else []
    return f"{len(method.runs)} ({', '.join(notes)})" if notes else str(len(method.runs))


def _table(name: str, title: str, methods: Sequence[Method], numbers: Callable[[Run], Numbers]) -> Table:
    rows = [_statistics([numbers(run) for run in method.runs]) for method in methods]
    shown = [quantity for quantity in rows[0] if any(row[quantity].count for row in rows)]
    shown_rows = [{quantity: row[quantity] for quantity in shown} for row in rows]
    return Table(name, title, methods, shown_rows, empty=[quantity for quantity in rows[0] if quantity not in shown])


def _site_tables(methods: Sequence[Method], metric: str) -> list[Table]:
    """The table of the sites, where the clients of all runs bear the same names; else none."""
    scores = [[site_scores(run) for run in method.runs] for method in methods]
    sites = list(scores[0][0])
    if not 0 < len(sites) <= _MOST_SITES or any(list(run) != sites for runs in scores for run in runs):
        return []
    title = f"{metric_title(metric)} at each site"
    return [SiteTable("sites", title, methods, [_statistics(runs) for runs in scores])]


def _without_repeats(table: Table) -> Table:
    """The table without the columns of the global model, if no client has a model of its own beside it."""
    pairs = [(name, name.replace("site ", "personal ", 1)) for name in table.quantities if name.startswith("site ")]
    repeats = all(
        row[site].mean is None or row[site] == row.get(personal) for row in table.rows for site, personal in pairs
    )
    hidden = {site for site, _ in pairs} if repeats else set()
    rows = [{name: value for name, value in row.items() if name not in hidden} for row in table.rows]
    return replace(table, rows=rows)


def _statistics(runs: Sequence[Numbers]) -> dict[str, Statistic]:
    return {name: statistic([numbers[name] for numbers in runs]) for name in runs[0]}
