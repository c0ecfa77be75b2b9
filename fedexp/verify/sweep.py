"""Verifies a sweep: each of its points, that none is missing, and sweep.csv, which is computed again from them."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.errors import HydraException

from fedexp.config import one_at_a_time, saved_config
from fedexp.config.saved_config import read_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError
from fedexp.core.nested import lookup
from fedexp.files import run_tables
from fedexp.files.atomic import display_path
from fedexp.files.failure import read_failure
from fedexp.files.untrusted import read_regular
from fedexp.files.untrusted_yaml import read_yaml
from fedexp.maths.curve_metrics import metric_name
from fedexp.report.read import methods, runs
from fedexp.report.topics import sweep_table
from fedexp.sweep.points import expand_words
from fedexp.verify.comparison import ROUNDING, cells_agree
from fedexp.verify.coverage import unchecked_files
from fedexp.verify.verify import RecomputeBudget, Say, VerifyResult, verify

NAME, TABLE, NOTHING = "multirun.yaml", "sweep.csv", "nothing else"


def verify_sweep(folder: Path, budget: RecomputeBudget, say: Say, trust: Trust = NO_TRUST) -> VerifyResult:
    """Verifies the points of a sweep in order; the seconds of the budget are shared among them.

    Raises:
        ConfigError: the folder holds no point that can be verified.
    """
    points = [path.parent for path in folder.rglob(saved_config.NAME)]
    points = sorted(
        (point_folder for point_folder in points if (point_folder / "metrics.csv").is_file()), key=runs.natural_order
    )
    roundless = [path for path in points if run_tables.read_frame(path / "metrics.csv").empty]
    points = [point_folder for point_folder in points if point_folder not in roundless]
    if not points:
        raise ConfigError(f"{display_path(folder)} has no point with a finished round; there is nothing to verify")
    for point_folder in roundless:
        reason = read_failure(point_folder)
        say(f"{display_path(point_folder)} has no finished round{f': {reason}' if reason else ''}")
    complaints, exact = [*_missing_points(folder)], True
    for point_folder in points:
        result = verify(point_folder, replace(budget, seconds=budget.seconds / len(points)), say, trust)
        complaints += [
            complaint if display_path(point_folder) in complaint else f"{display_path(point_folder)}: {complaint}"
            for complaint in result.complaints
        ]
        exact = exact and result.exact
    complaints += [*_ambiguous_points(points), *_table_complaints(folder, points, trust)]
    point_files = [path.relative_to(folder).as_posix() for point_folder in points for path in point_folder.rglob("*")]
    unchecked_names = unchecked_files(folder, [*point_files, TABLE, NAME])
    roundless_text = f" ({len(roundless)} have no finished round)" if roundless else ""
    say(f"checked: {len(points)} points{roundless_text}, {TABLE} made again. not checked: {unchecked_names or NOTHING}")
    return VerifyResult(complaints, exact)


def _missing_points(folder: Path) -> Iterator[str]:
    """Yields complaints about points that have no folder of their number, or whose folder has other words."""
    saved = read_yaml(folder / NAME)
    params, task = lookup(saved, "hydra.sweeper.params"), lookup(saved, "hydra.overrides.task")
    try:
        words = one_at_a_time.join_overrides(params, task or [])
        expected = expand_words(lookup(saved, "hydra.sweeper._target_"), words)
    except (HydraException, TypeError, AttributeError) as error:
        raise ConfigError(f"{display_path(folder / NAME)} must hold the words of a sweep; restore it") from error
    if expected is None or lookup(saved, "hydra.sweep.subdir") != "${hydra.job.num}":
        return
    for number, words in enumerate(expected):
        point_folder = folder / str(number)
        if not (point_folder / "metrics.csv").is_file():
            yield f"{display_path(point_folder)} is missing, the point {' '.join(words)}"
        elif saved_config.read(point_folder).overrides != words:
            yield f"{display_path(point_folder)} must be the point {' '.join(words)}, but its words are others"
    for path in folder.glob(f"*/{saved_config.NAME}"):
        if path.parent.name not in map(str, range(len(expected))):
            yield f"{display_path(path.parent)} is no point of the sweep"


def _ambiguous_points(points: list[Path]) -> Iterator[str]:
    """Yields complaints about points that sweep.csv counts as repetitions, though more than their seed differs."""
    first: dict[Any, tuple[Path, Any]] = {}
    for point_folder in points:
        run = runs.read(point_folder)
        words = frozenset(word for word in saved_config.read(point_folder).overrides if not saved_config.is_seed(word))
        kind = methods.freeze(methods.options(run)), methods.freeze(methods.settings(run))
        first_folder, first_kind = first.setdefault(words, (point_folder, kind))
        if first_kind != kind:
            yield f"{display_path(first_folder)} and {display_path(point_folder)} differ in more than their words say"


def _table_complaints(folder: Path, points: list[Path], trust: Trust) -> Iterator[str]:
    """Yields a complaint if sweep.csv is not the table that the points give."""
    path, evaluation = folder / TABLE, read_config(points[0], trust)["evaluation"]
    metrics = evaluation.get("metrics")
    table = sweep_table.ranking(
        sweep_table.read_points(folder), evaluation["rank_on"], metric_name(metrics[0]) if metrics else "loss"
    )
    recomputed_rows = _cells(table.to_csv(index=False))
    if not path.is_file():
        if all((point_folder / "summary.json").is_file() for point_folder in points):
            yield f"{display_path(path)} is missing"
        return
    written = _cells(read_regular(path, run_tables.LARGEST).decode(errors="replace"))
    same = len(recomputed_rows) == len(written) and all(
        len(written_row) == len(recomputed_row)
        and all(map(cells_agree, written_row, recomputed_row, [ROUNDING] * len(written_row)))
        for written_row, recomputed_row in zip(written, recomputed_rows, strict=True)
    )
    if not same:
        yield f"{display_path(path)} is not the table that the points come to"


def _cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))
