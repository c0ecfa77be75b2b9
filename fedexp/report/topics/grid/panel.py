"""Final accuracies of many runs laid out by two settings: rules by attacks, say, with the worst case of each row.

What else differs between the runs makes panels. A cell is the mean over its finished runs (the seeds). It is complete
with as many of them as the sweep planned, or else as the fullest cell has; others say k/n and decide nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.maths.curve_metrics import higher_is_better
from fedexp.maths.metric_names import metric_text
from fedexp.maths.significance import student_quantile
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.quantity_names import is_share
from fedexp.report.read import sweeps
from fedexp.report.read.measures import statistic
from fedexp.report.read.methods import differing_keys, differing_options, group_runs, options, settings
from fedexp.report.read.runs import Run, shared_metric
from fedexp.report.topics.tables import ALL, View

if TYPE_CHECKING:
    import pandas as pd

_LISTED = 4  # settings
METHOD = "method"  # the axis of all that differs but the other one
Cells = dict[tuple[str, str], list[float | None]]  # of a row and a column: each run's number, None while unfinished


@dataclass(frozen=True, eq=False)
class Panel:
    """`values [R, C]` of a metric by `rows` and `columns`, NaN where no run is finished; `title`: what else was set.

    `stds [R, C]` are the sample standard deviations over the seeds, NaN below two of them; `counts [R, C]` are the
    finished seeds, of which each cell should have `seeds`. The `view` says what stands behind a mean, and in what unit.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray
    stds: np.ndarray
    counts: np.ndarray
    seeds: int
    metric: str = "accuracy"
    view: View = ALL

    @property
    def is_in_percent(self) -> bool:
        """Whether its texts are in percent, without the sign."""
        return self.view.percent and is_share(f"final {self.metric}")

    @property
    def measure(self) -> str:
        """The metric within a sentence, with its unit."""
        return f"{metric_text(self.metric)}{' in %' if self.is_in_percent else ''}"

    @property
    def complete(self) -> np.ndarray:
        """Which cells have all their seeds, bool `[R, C]`."""
        return (self.counts >= self.seeds) & np.isfinite(self.values)

    @property
    def spreads(self) -> np.ndarray:
        """What stands behind each mean, `[R, C]`: its deviation, or half of its 95 % interval."""
        if not self.view.interval:
            return self.stds
        quantiles = np.vectorize(student_quantile, otypes=[float])(self.counts - 1)  # NaN below two seeds
        return quantiles * self.stds / np.sqrt(np.maximum(self.counts, 1))

    @property
    def worst(self) -> np.ndarray:
        """The worst value of each row, `[R]`, NaN where a cell is not complete."""
        worst = self.values.min(axis=1) if higher_is_better(self.metric) else self.values.max(axis=1)
        return np.where(self.complete.all(axis=1), worst, np.nan)

    def grid(self, corner: str) -> Grid:
        """The panel as texts."""
        rows = [
            [name, *(self._cell(row, column) for column in range(len(self.columns))), self.number(worst)]
            for row, (name, worst) in enumerate(zip(self.rows, self.worst, strict=True))
        ]
        return Grid([corner, *self.columns, "worst"], rows, bold=self._best_cells())

    def frame(self, by: tuple[str, str]) -> "pd.DataFrame":
        """A line a cell in full precision, with its finished seeds and those planned."""
        import pandas as pd

        names = (*by, f"final {self.metric} mean", f"final {self.metric} std", "seeds", "planned seeds")
        lines = [
            (name, heading, self.values[row, column], self.stds[row, column], int(self.counts[row, column]), self.seeds)
            for row, name in enumerate(self.rows)
            for column, heading in enumerate(self.columns)
        ]
        return pd.DataFrame(lines, columns=list(names))

    def number(self, value: float, spread: float = np.nan) -> str:
        """A value and its spread; a dash where there is none."""
        return number(100 * value, 100 * spread, 2) if self.is_in_percent else number(value, spread)

    def count_text(self, row: int, column: int) -> str:
        """How many seeds a cell has; empty where it has all."""
        count = int(self.counts[row, column])
        return f"({count}/{self.seeds})" if count < self.seeds and self.seeds > 1 else ""

    def _cell(self, row: int, column: int) -> str:
        value = self.number(self.values[row, column], self.spreads[row, column])
        return f"{value} {self.count_text(row, column)}".rstrip()

    def _best_cells(self) -> frozenset[tuple[int, int]]:
        """The best cell of each column of several rows, among those that are complete."""
        values = np.column_stack([np.where(self.complete, self.values, np.nan), self.worst])
        better = values if higher_is_better(self.metric) else -values
        return frozenset(
            (int(row), column + 1)
            for column, cells in enumerate(better.T)
            if np.isfinite(cells).sum() > 1 and np.nanmin(cells) < np.nanmax(cells)
            for row in np.flatnonzero(cells == np.nanmax(cells))
        )


def panels(runs: Sequence[Run], by: tuple[str, str], view: View = ALL) -> list[Panel]:
    """Panels by the settings `by` (groups, dotted keys or METHOD): the first makes the rows, the second the columns.

    Raises:
        ConfigError: a setting is unknown to all runs, or has one value only; or no run is finished.
    """
    if "seed" in by:
        raise ConfigError("--grid: seed is no setting, since a cell is a mean over seeds; name what differs besides")
    planned = sweeps.planned_values([run.folder for run in runs])
    axes = [axis_values(runs, name, planned) for name in by]
    other_settings, metric = different_settings(runs, by), shared_metric(runs)
    cells_by_title: dict[str, Cells] = {}
    for run in runs:
        cells = cells_by_title.setdefault(title_of(run, other_settings), {})
        value = run.final(f"test_{metric}") if run.is_finished else None
        cells.setdefault((setting_text(run, by[0]), setting_text(run, by[1])), []).append(value)
    begun = max(len(cell) for cells in cells_by_title.values() for cell in cells.values())
    drawn = {
        title: cells
        for title, cells in cells_by_title.items()
        if any(statistic(values).count for values in cells.values())
    }
    if not drawn:
        if any(run.is_finished for run in runs):
            raise ConfigError(f"--grid shows test_{metric}, which none of {len(runs)} runs has at its end; name others")
        raise ConfigError(f"--grid needs finished runs, but none of {len(runs)} is; fedexp resume goes on with them")
    crossed = len(cells_by_title) == 1
    return [
        replace(_panel(title, axes, cells, crossed=crossed), seeds=max(planned.seeds, begun), metric=metric, view=view)
        for title, cells in drawn.items()
    ]


def _panel(title: str, axes: Sequence[tuple[str, ...]], cells: Cells, *, crossed: bool) -> Panel:
    """Builds a panel from its cells: with every value where all are `crossed`, else with those that it has a run of."""
    rows, columns = (
        tuple(value for value in values if crossed or any(cell[axis] == value for cell in cells))
        for axis, values in enumerate(axes)
    )
    lines = [[statistic(cells.get((row, name), [])) for name in columns] for row in rows]
    means = np.array([[cell.mean for cell in line] for line in lines], dtype=np.float64)  # NaN where it is None
    stds = np.array([[cell.std for cell in line] for line in lines], dtype=np.float64)
    counts = np.array([[cell.count for cell in line] for line in lines])
    return Panel(title, rows, columns, means, stds, counts, 1)


def title_of(run: Run, names: Sequence[str]) -> str:
    """These settings of a run, by which its panel is named."""
    return ", ".join(f"{name}={setting_text(run, name)}" for name in names)


def axis_values(runs: Sequence[Run], name: str, planned: sweeps.Planned) -> tuple[str, ...]:
    """The values of the runs, then those that a sweep planned and no run has yet.

    Raises:
        ConfigError: no run knows the setting, or there is one value only.
    """
    setting_names = {key: None for run in runs for key in (*options(run), *settings(run))}
    if name not in setting_names:
        raise ConfigError(f"--grid: no run has a setting {name}; {did_you_mean(name, sorted(setting_names))}")
    values = list(dict.fromkeys([*(setting_text(run, name) for run in runs), *planned.values.get(name, ())]))
    if len(values) > 1:
        return tuple(values)
    differing = different_settings(runs, (name, name))
    remedy = f"name what differs ({', '.join(differing[:_LISTED])})" if differing else "leave --grid out"
    run_more = "" if name == METHOD else f", or run more of it: fedexp run -m {name}={values[0]},..."
    raise ConfigError(
        f"--grid needs settings of several values, but {name} is {values[0]} in every run; {remedy}{run_more}"
    )


def different_settings(runs: Sequence[Run], by: tuple[str, str]) -> list[str]:
    """What differs besides the two settings and what belongs to them; nothing beside methods."""
    if METHOD in by:
        return []
    prefixes = tuple(f"{name}." for name in by)
    groups = [name for name in differing_options([options(run) for run in runs]) if name not in by]
    keys = [key for key in differing_keys(runs) if key not in by and not key.startswith(prefixes)]
    return [*groups, *(key for key in keys if key.partition(".")[0] not in groups)]


def name_methods(runs: Sequence[Run], by: tuple[str, str]) -> list[Run]:
    """The runs with their methods as a setting, if the grid is laid out by it: all that differs but its other axis."""
    if METHOD not in by:
        return [*runs]
    axis = next((name for name in by if name != METHOD), METHOD)
    without = [
        replace(
            run,
            choices={name: option for name, option in run.choices.items() if name != axis},
            config={key: value for key, value in run.config.items() if key not in _keys_of(run, axis)},
        )
        for run in runs
    ]
    labels = {run.folder: method.label for method in group_runs(without) for run in method.members}
    return [replace(run, choices={**run.choices, METHOD: labels[run.folder]}) for run in runs]


def _keys_of(run: Run, axis: str) -> set[str]:
    """The keys of a setting, and those that follow them."""
    keys = {axis, *(key for key in run.config if key.startswith(f"{axis}."))}
    texts = {key: str(text) for key, text in run.raw_config.items() if "${" in str(text)}
    while followers := {key for key, text in texts.items() if any(f"{{{name}}}" in text for name in keys)} - keys:
        keys |= followers
    return keys


def setting_text(run: Run, name: str) -> str:
    """A setting of a run as text; a dash where the run does not know it."""
    values = {**settings(run), **options(run)}
    return short_text(values[name]) if name in values else "-"


def number(value: float, spread: float = np.nan, decimals: int = 3) -> str:
    """A value and its spread; a dash where there is none."""
    text = "" if np.isnan(spread) else f" ± {spread:.{decimals}f}"
    return "-" if np.isnan(value) else f"{value:.{decimals}f}{text}"
