"""Verifies a sweep: each of its points, that none is missing, and sweep.csv, which is computed again from them."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from fedexp.config import noted, one_at_a_time
from fedexp.config.compose import read_config
from fedexp.config.trust import NOBODY, Trust
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.core.yaml_file import read_yaml
from fedexp.report import methods, runs, sweep_table
from fedexp.verify.comparing import alike
from fedexp.verify.coverage import unchecked_files
from fedexp.verify.verify import ReplayBudget, Say, VerifyResult, verify

NAME, TABLE = "multirun.yaml", "sweep.csv"
_SPLIT = {one_at_a_time.BASIC: one_at_a_time.combinations, one_at_a_time.NAME: one_at_a_time.split}


def verify_sweep(folder: Path, budget: ReplayBudget, say: Say, trust: Trust = NOBODY) -> VerifyResult:
    """Verifies the points of a sweep in order; the seconds of the budget are shared among them.

    Raises:
        ConfigError: the folder holds no point that can be verified.
    """
    points = [path.parent.parent for path in folder.rglob(f"{noted.FOLDER}/config.yaml")]
    points = sorted((place for place in points if (place / "metrics.csv").is_file()), key=runs.natural)
    if not points:
        raise ConfigError(f"{shown(folder)} has no point with a finished round; there is nothing to verify")
    complaints, exact = [*_missing(folder)], True
    for place in points:
        result = verify(place, replace(budget, seconds=budget.seconds / len(points)), say, trust)
        complaints += [each if shown(place) in each else f"{shown(place)}: {each}" for each in result.complaints]
        exact = exact and result.exact
    complaints += [*_merged(points), *_table(folder, points, trust)]
    known = [path.relative_to(folder).as_posix() for place in points for path in place.rglob("*")]
    others = unchecked_files(folder, [*known, TABLE, NAME])
    say(f"checked: {len(points)} points, {TABLE} made again. not checked: {others or 'nothing else'}")
    return VerifyResult(complaints, exact)


def _missing(folder: Path) -> Iterator[str]:
    """Yields complaints about points that have no folder of their number, or whose folder has other words."""
    hydra = read_yaml(folder / NAME).get("hydra", {})
    sweeper = _at(hydra, "sweeper")
    split, task = _SPLIT.get(str(sweeper.get("_target_"))), _at(hydra, "overrides").get("task")
    if split is None or str(_at(hydra, "sweep").get("subdir")) != "${hydra.job.num}":
        return
    try:
        expected = split(
            OverridesParser.create().parse_overrides(one_at_a_time.words(sweeper.get("params"), task or []))
        )
    except (HydraException, TypeError, AttributeError) as error:
        raise ConfigError(f"{shown(folder / NAME)} must hold the words of a sweep; restore it") from error
    for number, words in enumerate(expected):
        place = folder / str(number)
        if not (place / "metrics.csv").is_file():
            yield f"{shown(place)} is missing, the point {' '.join(words)}"
        elif noted.overrides(place) != words:
            yield f"{shown(place)} must be the point {' '.join(words)}, but its words are others"
    for path in folder.glob(f"*/{noted.FOLDER}"):
        if path.parent.name not in map(str, range(len(expected))):
            yield f"{shown(path.parent)} is no point of the sweep"


def _merged(points: list[Path]) -> Iterator[str]:
    """Yields complaints about points that sweep.csv counts as repetitions, though more than their seed differs."""
    first: dict[Any, tuple[Path, Any]] = {}
    for place in points:
        run = runs.read(place)
        if run is not None:
            words = frozenset(word for word in noted.overrides(place) if word.lstrip("+").partition("=")[0] != "seed")
            kind = methods.frozen(methods.options(run)), methods.frozen(methods.settings(run))
            other, same = first.setdefault(words, (place, kind))
            if same != kind:
                yield f"{shown(other)} and {shown(place)} differ in more than their words say"


def _table(folder: Path, points: list[Path], trust: Trust) -> Iterator[str]:
    """Yields a complaint if sweep.csv is not the table that the points give."""
    path, evaluation = folder / TABLE, read_config(points[0], trust)["evaluation"]
    metrics = evaluation.get("metrics")
    table = sweep_table.ranking(
        sweep_table.read_points(folder), evaluation["rank_on"], metrics[0] if metrics else "loss"
    )
    made = _cells(table.to_csv(index=False))
    if not path.is_file():
        if all((place / "summary.json").is_file() for place in points):
            yield f"{shown(path)} is missing"
        return
    written = _cells(path.read_text(encoding="utf-8", errors="replace"))
    same = len(made) == len(written) and all(
        len(one) == len(other) and all(map(alike, one, other, [_ROUNDING] * len(one)))
        for one, other in zip(written, made, strict=True)
    )
    if not same:
        yield f"{shown(path)} is not the table that the points come to"


_ROUNDING = 1e-9


def _cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def _at(node: Any, key: str) -> Mapping[str, Any]:
    found = node.get(key) if isinstance(node, Mapping) else None
    return found if isinstance(found, Mapping) else {}
