"""Final accuracies of many runs laid out by two settings: rules by attacks, say, with the worst case of each row.

What else differs between the runs makes panels. A cell is the mean over its finished runs (the seeds).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.maths.curve_metrics import final, higher_is_better
from fedexp.report.draw import heatmap, style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import of_table
from fedexp.report.draw.section import Picture
from fedexp.report.read.methods import differing_keys, differing_options, options, settings
from fedexp.report.read.runs import Run, shared_metric


@dataclass(frozen=True, eq=False)
class Panel:
    """`values [R, C]` of a metric by `rows` and `columns`, NaN where no run is finished; `title`: what else was set.

    `stds [R, C]` are the sample standard deviations over the seeds, NaN below two of them.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray
    stds: np.ndarray
    metric: str = "accuracy"

    @property
    def worst(self) -> np.ndarray:
        """The worst value of each row, `[rows]`, NaN where a cell is missing."""
        return self.values.min(axis=1) if higher_is_better(self.metric) else self.values.max(axis=1)

    def grid(self, corner: str) -> Grid:
        """The panel as texts."""
        rows = [
            [name, *(_text(value, std) for value, std in zip(values, stds, strict=True)), _text(worst)]
            for name, values, stds, worst in zip(self.rows, self.values, self.stds, self.worst, strict=True)
        ]
        return Grid([corner, *self.columns, "worst"], rows, bold=self._best_cells())

    def _best_cells(self) -> frozenset[tuple[int, int]]:
        """The best cell of each column of several rows."""
        values = np.column_stack([self.values, self.worst])
        better = values if higher_is_better(self.metric) else -values
        return frozenset(
            (int(row), column + 1)
            for column, cells in enumerate(better.T)
            if np.isfinite(cells).sum() > 1 and np.nanmin(cells) < np.nanmax(cells)
            for row in np.flatnonzero(cells == np.nanmax(cells))
        )


def explain(runs: Sequence[Run]) -> str:
    """What the numbers of a grid are."""
    finished = sum(run.is_finished for run in runs)
    metric = shared_metric(runs)
    return (
        f"Final test {metric} of {finished} runs; a cell is the mean ± sample standard deviation over its seeds, "
        "worst the least good mean of its row. Bold: the best of its column."
    )


def caveats(runs: Sequence[Run]) -> list[str]:
    """What is left out of it."""
    unfinished = sum(not run.is_finished for run in runs)
    return [f"{unfinished} unfinished run(s) are left out."] if unfinished else []


def panels(runs: Sequence[Run], by: tuple[str, str]) -> list[Panel]:
    """Panels by the settings `by` (groups or dotted keys): the first makes the rows, the second the columns.

    Raises:
        ConfigError: a setting is unknown to some run, or has one value only.
    """
    rows, columns = (_axis_values(runs, name) for name in by)
    other_settings, metric = _other_settings(runs, by), shared_metric(runs)
    cells_by_title: dict[str, dict[tuple[str, str], list[float]]] = {}
    for run in runs:
        title = ", ".join(f"{name}={_setting_text(run, name)}" for name in other_settings)
        value = final(run.column(f"test_{metric}")) if run.is_finished else None
        if value is not None:
            cell = (_setting_text(run, by[0]), _setting_text(run, by[1]))
            cells_by_title.setdefault(title, {}).setdefault(cell, []).append(value)
    return [replace(_panel(title, rows, columns, cells), metric=metric) for title, cells in cells_by_title.items()]


def panel_picture(name: str, panel: Panel, by: tuple[str, str]) -> Picture:
    """A heat map with numbers in the cells, grey with a dash where there is none; the last column is the worst case.

    The colours reach from the least to the greatest number of the panel.
    """
    values = np.column_stack([panel.values, panel.worst])
    height, width = values.shape
    size = (2.2 + 0.9 * width, 1.6 + 0.46 * height)
    title = f"Final test {panel.metric}"
    figure, axes = style.canvas(title, by[1], by[0], size)
    heatmap.draw_cells(figure, axes, values, f"Test {panel.metric}", least=float(np.nanmin(values)))
    heatmap.draw_numbers(axes, values, _text, lower=-0.12)
    heatmap.draw_numbers(axes, panel.stds, lambda std: "" if np.isnan(std) else f"± {std:.3f}", lower=0.24, size=6.5)
    style.name_rows(axes, panel.rows)
    axes.axvline(width - 1.5, color=style.PAPER, linewidth=4)
    axes.set_xticks(range(width), labels=[*map(style.shorten, panel.columns), "worst"], rotation=35, ha="right")
    data = of_table(panel.grid(" / ".join(by)))
    return Picture(name=name, title=title, figure=figure, data=data, caption=panel.title)


def _panel(
    title: str, rows: tuple[str, ...], columns: tuple[str, ...], cells: dict[tuple[str, str], list[float]]
) -> Panel:
    """Builds a panel from its cells, without empty rows and columns."""
    rows = tuple(row for row in rows if any(cell[0] == row for cell in cells))
    columns = tuple(column for column in columns if any(cell[1] == column for cell in cells))
    means, stds = (
        np.array([[of(cells.get((row, name), [])) for name in columns] for row in rows]) for of in (_mean, _std)
    )
    return Panel(title, rows, columns, means, stds)


def _axis_values(runs: Sequence[Run], name: str) -> tuple[str, ...]:
    setting_names = {key: None for run in runs for key in (*options(run), *settings(run))}
    if name not in setting_names:
        raise ConfigError(f"--grid: no run has a setting {name}; {did_you_mean(name, sorted(setting_names))}")
    values = tuple(dict.fromkeys(_setting_text(run, name) for run in runs))
    if len(values) > 1:
        return values
    raise ConfigError(f"--grid needs settings of several values, but {name} is {', '.join(values)} in every run")


def _other_settings(runs: Sequence[Run], by: tuple[str, str]) -> list[str]:
    """What differs besides the two settings and what belongs to them."""
    prefixes = tuple(f"{name}." for name in by)
    groups = [name for name in differing_options([options(run) for run in runs]) if name not in by]
    keys = [key for key in differing_keys(runs) if key not in by and not key.startswith(prefixes)]
    return [*groups, *(key for key in keys if key.partition(".")[0] not in groups)]


def _setting_text(run: Run, name: str) -> str:
    """A setting of a run as text; a dash where the run does not know it."""
    values = {**settings(run), **options(run)}
    return short_text(values[name]) if name in values else "-"


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else np.nan


def _std(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def _text(value: float, std: float = np.nan) -> str:
    spread = "" if np.isnan(std) else f" ± {std:.3f}"
    return "-" if np.isnan(value) else f"{value:.3f}{spread}"
