"""The points of a sweep ranked by the area under a curve: `sweep.csv` and `sweep.png`.

The curve is that of the loss, or of the main metric where one is chosen (`evaluation.metrics`); of some metrics more is
better.

Only points with a finished run have a rank: the curve of an unfinished one encloses a smaller area, which would put it
first. Points that differ in the seed only are one row, the mean over their finished seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from fedexp.config import saved_config
from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError
from fedexp.core.nested import lookup
from fedexp.files import run_tables, summary_json
from fedexp.files.atomic import display_path, write_atomically
from fedexp.maths.curve_metrics import area_to_end, higher_is_better, last, main_metric
from fedexp.process.terminal import width
from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.read.measures import Statistic, statistic
from fedexp.report.read.runs import natural_order

NAME = "sweep.csv"
RankOn = Literal["validation", "test"]
_GREY = "#b4bcc4"
SHOWN = 40  # rows on the terminal and bars in the picture
_UNRANKED = {
    "validation": "not ranked: no finished run has a validation_{by}; set evaluation.validation=true "
    "(or evaluation.rank_on=test)",
    "test": "not ranked: no finished run has a test_{by}",
}
_TOO_SHORT = "not ranked: the area under a curve needs at least two evaluated rounds, and an end, with every seed"


@dataclass(frozen=True, eq=False)
class RankedRun:
    """One run of a sweep: its overrides and its metrics, which are empty unless the run is finished."""

    overrides: Mapping[str, str]
    metrics: pd.DataFrame

    def column(self, name: str) -> np.ndarray:
        """A column of numbers, `[rounds]`; NaN for every cell that does not exist."""
        return run_tables.numbers(self.metrics, name)


@dataclass(frozen=True)
class SweepBar:
    """One bar of `sweep.png`: its label, its length, and the standard deviation over seeds if there is one."""

    label: str
    mean: float
    std: float | None


def conclude(folder: Path, on: RankOn = "validation", by: str = "loss") -> str:
    """Writes `sweep.csv` and, where there is a ranking, `sweep.png` into the folder; returns the table as text."""
    points = read_points(folder)
    table = ranking(points, on, by)
    write_atomically(folder / NAME, table.to_csv(index=False).encode())
    text = grid(table.head(SHOWN)).fit_width(width(), f"see {display_path(folder / NAME)}", Grid.aligned_text)
    lines = [text.rstrip("\n")]
    if len(table) > SHOWN:
        lines.append(f"... and {len(table) - SHOWN} more in {display_path(folder / NAME)}")
    if "rank" in table:
        title = f"{on.capitalize()} {by}: area under the curve"
        draw_bars(
            folder / "sweep.png", best_bars(table, f"{on}_{by} AUC"), title, higher_is_better=higher_is_better(by)
        )
        lines += _warnings(table, points, f"{on}_{by}")
    elif any(key != "seed" for key in swept_keys(points)):
        measured = any(not np.isnan(point.column(f"{on}_{by}")).all() for point in points)
        lines.append(_TOO_SHORT if measured else _UNRANKED[on].format(by=by))
    return "\n".join(lines) + "\n"


def ranking(points: Sequence[RankedRun], on: RankOn, by: str = "loss") -> pd.DataFrame:
    """A row a combination of the swept keys, best first; without the curve to rank by, in the order of the sweep.

    Columns: `rank` (equal areas share it; empty without a finished run), the swept keys, `seeds` (finished ones), then
    mean and std of `validation_loss AUC` (or of the metric `by`), mean of the final main metric, and the same of the
    test data where they rank (`on="test"`) or where nothing does. A mean is that of all seeds of a row, or empty.
    """
    keys = [key for key in swept_keys(points) if key != "seed"]
    metric = next((main_metric(point.metrics) for point in points if len(point.metrics)), "accuracy")
    groups: dict[tuple[str, ...], list[RankedRun]] = {}
    for point in points:
        groups.setdefault(tuple(point.overrides.get(key, "") for key in keys), []).append(point)
    rows = [dict(zip(keys, values, strict=True)) | _row(members, metric, by) for values, members in groups.items()]
    table, area = pd.DataFrame(rows), f"{on}_{by} AUC mean"
    ranked = any(line[area] is not None for line in rows)
    if ranked and on == "validation":
        table = table.drop(columns=[name for name in _row([], metric, by) if "test" in name])
    missing = [name for name, none in table.isna().all().items() if none and name not in ("seeds", *keys)]
    table = table.drop(columns=missing)
    if not ranked:
        return table
    table.insert(0, "rank", table[area].rank(method="min", ascending=not higher_is_better(by)).astype("Int64"))
    return table.sort_values("rank", kind="stable", na_position="last", ignore_index=True)


def read_points(folder: Path) -> list[RankedRun]:
    """Every point below a sweep's folder, in the order of their numbers.

    Raises:
        ConfigError: the folder holds no points of a sweep.
    """
    point_folders = sorted((path.parent for path in folder.rglob(saved_config.NAME)), key=natural_order)
    if not point_folders:
        raise ConfigError(f"{folder} must be the folder of a sweep, but no point with {saved_config.NAME} is below")
    return _fill_overrides([_point(point_folder) for point_folder in point_folders], point_folders)


def swept_keys(points: Sequence[RankedRun]) -> list[str]:
    """The overrides that are not the same in all points, in the order of the command line."""
    keys = dict.fromkeys(key for point in points for key in point.overrides)
    return [key for key in keys if len({point.overrides.get(key) for point in points}) > 1]


def grid(table: pd.DataFrame) -> Grid:
    """The table as texts: numbers with four digits, empty cells for missing values."""
    names = [str(name) for name in table]
    return Grid(names, [[_text(line[name]) for name in names] for line in _records(table)], texts=0)


def best_bars(table: pd.DataFrame, area: str) -> list[SweepBar]:
    """The best rows that have a rank, each named by its swept keys."""
    names = [str(name) for name in table]
    keys = names[1 : names.index("seeds")]
    best = [line for line in _records(table) if line["rank"] is not None][:SHOWN]
    return [
        SweepBar(
            label=", ".join(f"{key}={line[key]}" for key in keys) or "all points",
            mean=line[f"{area} mean"],
            std=line.get(f"{area} std"),
        )
        for line in best
    ]


@style.style()
def draw_bars(path: Path, bars: Sequence[SweepBar], title: str, *, higher_is_better: bool = False) -> None:
    """Bars from 0, standard deviations as lines where there are some; the first is the best, and darker.

    Colours are those of methods in other pictures, so bars are grey.
    """
    positions, means = np.arange(len(bars)), np.array([bar.mean for bar in bars])
    stds = np.array([bar.std for bar in bars], dtype=np.float64)  # NaN where there is none
    several = np.isfinite(stds) & np.isfinite(means)
    over = " (mean ± standard deviation over seeds)" if several.any() else ""
    better = "higher" if higher_is_better else "lower"
    size = (8, 1.3 + 0.26 * len(bars))
    figure, axes = style.canvas(f"{title}{over}", f"Area over rounds, {better} is better", size=size)
    colors = [style.QUIET if mean == means[0] else _GREY for mean in means]
    axes.barh(positions, np.where(np.isfinite(means), means, 0), height=0.75, color=colors)
    axes.errorbar(means[several], positions[several], xerr=stds[several], fmt="none", ecolor=style.INK, capsize=2)
    axes.set_yticks(positions, labels=[bar.label for bar in bars], fontsize=8)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    style.save(path, figure)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as mappings, None for what does not exist."""
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _point(folder: Path) -> RankedRun:
    overrides = {}
    for text in saved_config.read(folder).overrides:
        key, _, value = text.partition("=")
        overrides[key.lstrip("+")] = value
    is_finished = summary_json.read(folder) is not None
    metrics = run_tables.read_frame(folder / "metrics.csv") if is_finished else pd.DataFrame()
    return RankedRun(overrides, pd.DataFrame() if run_tables.all_dropped(metrics) else metrics)


def _fill_overrides(points: Sequence[RankedRun], folders: Sequence[Path]) -> list[RankedRun]:
    """A key that only some points override has in the others the value of their config."""
    keys, filled = swept_keys(points), []
    for point, folder in zip(points, folders, strict=True):
        missing = [key for key in keys if key not in point.overrides]
        config = saved_config.read(folder).config if missing else {}
        nodes = {key: lookup(config, key) for key in missing}
        values = {key: short_text(node) for key, node in nodes.items() if not isinstance(node, Mapping | None)}
        filled.append(replace(point, overrides={**point.overrides, **values}))
    return filled


def _row(points: Sequence[RankedRun], metric: str, by: str) -> dict[str, float | int | None]:
    finished = _one_a_seed(points)
    row: dict[str, float | int | None] = {"seeds": len(finished)}
    for kind in ("validation", "test"):
        area = _statistic_of_all([area_to_end(point.column(f"{kind}_{by}")) for point in finished])
        end = _statistic_of_all([last(point.column(f"{kind}_{metric}")) for point in finished])
        row |= {f"{kind}_{by} AUC mean": area.mean, f"{kind}_{by} AUC std": area.std}
        row |= {f"final {kind} {metric}": end.mean}
    return row


def _statistic_of_all(values: Sequence[float | None]) -> Statistic:
    """Mean and deviation over all seeds, or none: those of the others would be no mean over so many."""
    return statistic([] if None in values else values)


def _one_a_seed(points: Sequence[RankedRun]) -> list[RankedRun]:
    """The first finished run of every seed: another of the same would say nothing of chance."""
    first: dict[str | None, RankedRun] = {}
    for point in points:
        if len(point.metrics):
            first.setdefault(point.overrides.get("seed"), point)
    return list(first.values())


def _warnings(table: pd.DataFrame, points: Sequence[RankedRun], column: str) -> list[str]:
    """What makes the ranking doubtful."""
    lines = []
    missing = sum(not len(point.metrics) for point in points)
    if missing:
        lines.append(f"{missing} of {len(points)} points have no finished run and do not count")
    repeated = len(points) - missing - sum(table["seeds"].tolist())
    if repeated:
        lines.append(f"{repeated} of {len(points)} points repeat a seed and do not count")
    evaluated_rounds = [np.flatnonzero(~np.isnan(point.column(column))) for point in points]
    spans = {int(np.ptp(rounds)) for rounds in evaluated_rounds if len(rounds)}
    if len(spans) > 1:
        lines.append(f"the curves span {min(spans)} to {max(spans)} rounds: a shorter one encloses a smaller area")
    areas = zip(table["seeds"].tolist(), table[f"{column} AUC mean"].isna().tolist(), strict=True)
    without_area = sum(seeds > 0 and lacking for seeds, lacking in areas)
    if without_area:
        reason = "with one of their seeds the curve has fewer than two evaluated rounds, or no end"
        lines.append(f"{without_area} of {len(table)} rows have no area: {reason}")
    if len(set(table["seeds"].tolist())) > 1:
        lines.append("not every row is the mean over the same number of seeds")
    return lines
