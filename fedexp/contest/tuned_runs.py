"""The runs that decide a contest: each method with its best values, on seeds that no search has seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra

from fedexp.config import saved_config
from fedexp.config.compose import resolve_config
from fedexp.config.trust import Trust
from fedexp.contest.methods import Contender
from fedexp.files import run_tables
from fedexp.files.atomic import display_path
from fedexp.files.failure import read_failure
from fedexp.process.exits import FAILURE
from fedexp.process.terminal import print_text
from fedexp.run import addresses, folders
from fedexp.search.search import Search
from fedexp.sweep.launchers.contract import Basic, PointEnd
from fedexp.sweep.points import Point, compose_point
from fedexp.sweep.run_point import run_points

# The search held validation examples back: all methods train on the same ones now, too.
MEASURED = ("evaluation.test=true", "evaluation.validation=true")


@dataclass(frozen=True, eq=False)
class TunedMethod:
    """A method after its search: its best overrides with their validation value, and all its trials."""

    contender: Contender
    search: Search
    overrides: list[str]
    value: float
    trials: list[Any]


def new_seeds(search: Search, count: int) -> list[int]:
    """The `count` seeds after those of the search."""
    last = max(int(seed.partition("=")[2]) for seed in search.space.seeds)
    return list(range(last + 1, last + 1 + count))


def run_all(methods: Sequence[TunedMethod], folder: Path, seeds: int, jobs: int, trust: Trust) -> list[PointEnd]:
    """Runs what is missing or unfinished; returns the ends of all that failed, in an earlier pass too."""
    from fedexp.sweep.launchers.joblib import Joblib

    run_folders = [run for method in methods for run in _prepare(method, folder, seeds, trust)]
    missing = [run for run in run_folders if not folders.is_finished(run)]
    failed = [end for run in run_folders if run not in missing for end in _failed_ends(run)]
    launcher = Basic() if jobs == 1 else Joblib(jobs=jobs)
    for number, (run, end) in enumerate(run_points(missing, lambda run: run, launcher, False, trust), 1):
        failed += [end] if end.code else []
        outcome = f"failed: {end.message}" if end.code else "done"
        print_text(f"run {number} of {len(missing)}: {display_path(run)} {outcome}\n")
    return failed


def _failed_ends(run_folder: Path) -> list[PointEnd]:
    """The end of a finished run that failed, as it would again; none of one that has a new model."""
    if run_tables.has_new_model(run_folder / "metrics.csv"):
        return []
    return [PointEnd(run_folder, FAILURE, read_failure(run_folder) or "no update of any round was finite")]


def _prepare(method: TunedMethod, folder: Path, seeds: int, trust: Trust) -> list[Path]:
    """The folders of a method's runs, each with its config."""
    seed_names = [f"seed={seed}" for seed in new_seeds(method.search, seeds)]
    run_folders = [(folder / method.contender.folder / name).absolute() for name in seed_names]
    try:
        composer, config = method.search.composer(typed=False)
        for number, run_folder in enumerate(run_folders):
            overrides = [*method.search.space.fixed, *method.overrides, run_folder.name, *MEASURED]
            run_config = compose_point(composer, config, Point(number, overrides))
            resolved = resolve_config(run_config)
            trust.refuse_untrusted(resolved, folder)
            addresses.refuse_unknown(resolved, run_folder, trust)
            saved_config.save_once(run_folder, run_config, resolved)
    finally:
        GlobalHydra.instance().clear()
    return run_folders
