"""Runs the missing runs of a table, cheapest cells first, and saves the result of each as soon as it has ended.

A run's folder is NAME/runs/CELL/SEED; one that was cut off goes on where it stopped. Cells that ask for other numbers
of the same words share it. Its lines in results.csv are all that the page needs, so folders of runs may be removed.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

from fedexp.config import saved_config
from fedexp.config.compose import Composer, Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.config.trust import Trust
from fedexp.core.errors import ConfigError, closest_names, did_you_mean
from fedexp.files import run_tables, summary_json
from fedexp.files.atomic import display_path
from fedexp.files.open_folders import make_folder, open_folder
from fedexp.files.untrusted import refuse_special_files
from fedexp.files.unwritable import explain_unwritable
from fedexp.process.terminal import print_text
from fedexp.replay import results
from fedexp.replay.results import Result
from fedexp.replay.table import Cell, PublishedTable
from fedexp.report.read import runs
from fedexp.run import digests
from fedexp.run.state.checkpoint import changed_keys
from fedexp.sweep.executor import build_launcher
from fedexp.sweep.launchers.contract import PointEnd
from fedexp.sweep.points import Point, compose, compose_point, resolve_point, validate_point
from fedexp.sweep.run_point import run_points

RUNS = "runs"


@dataclass(frozen=True)
class Job:
    """One missing run: a cell and a seed."""

    number: int
    cell: Cell
    seed: int

    def __str__(self) -> str:
        return f"{self.cell.name}, seed {self.seed}"

    @property
    def point(self) -> Point:
        """The job as a point of a sweep, which launchers can run."""
        return Point(self.number, self.cell.words(self.seed))


@dataclass(frozen=True)
class FailedRun:
    """A run that failed, and how it ended."""

    job: Job
    end: PointEnd

    def __str__(self) -> str:
        return f"{self.job}: {self.end.message}; see {display_path(self.end.folder)}"


def missing_runs(table: PublishedTable, folder: Path, pattern: str, seeds: int | None) -> list[Job]:
    """The runs that have no result yet, cheapest cells first: every cell's first seed comes before its second.

    Raises:
        ConfigError: no cell is called so.
    """
    cells = [cell for cell in table.cells if fnmatchcase(cell.name, pattern)]
    if not cells:
        names = closest_names(pattern, [cell.name for cell in table.cells], "; ")
        raise ConfigError(f"--cells must match a cell of {table.name}, got {pattern}; there: {names}")
    all_results = results.read(folder)
    done = {(entry.cell, entry.seed) for cell in cells for entry in results.results_of_cell(all_results, cell)}
    wanted = [(cell, seed) for cell in cells for seed in range(cell.seeds if seeds is None else seeds)]
    remaining = [(cell, seed) for cell, seed in wanted if (cell.name, seed) not in done]
    remaining.sort(key=lambda entry: entry[0].minutes or 0.0)
    return [Job(number, *entry) for number, entry in enumerate(remaining)]


@dataclass
class Replay:
    """The missing runs, and the folder that holds the table's results; `words` choose a launcher."""

    table: PublishedTable
    folder: Path
    jobs: Sequence[Job]
    words: Sequence[str] = ()
    budget_s: float = math.inf
    start_time: float = field(default_factory=time.monotonic)
    failed: list[FailedRun] = field(default_factory=list)

    def execute(self) -> list[FailedRun]:
        """Runs them until the budget is spent; returns those that failed.

        Raises:
            ConfigError: a cell cannot work, or there is no such launcher; nothing has run then.
        """
        request = Request(conf_dir(), list(self.words))
        composer = make_composer(request)
        try:
            config = compose(composer, request)
            launcher = build_launcher(config)
            if launcher is None:
                raise ConfigError("a replay needs a launcher of fedexp, e.g. hydra/launcher=joblib")
            for job in {job.cell.run: job for job in self.jobs}.values():
                self._check(composer, config, job)
            with explain_unwritable(self.folder, "--into"):
                make_folder(self.folder)
            prepare = partial(self._prepare, composer, config)
            with open_folder(self.folder):
                for jobs, end in run_points(self._runs(), prepare, launcher, False, Trust(composed=True)):
                    for job in jobs:
                        self._record_result(job, end)
        finally:
            GlobalHydra.instance().clear()
        return self.failed

    def _check(self, composer: Composer, config: DictConfig, job: Job) -> None:
        try:
            validate_point(composer, config, job.point)
        except ConfigError as error:
            raise ConfigError(f"{self.table.name}, {error}") from error

    def _runs(self) -> list[list[Job]]:
        """The jobs grouped by run: several numbers of one run need it once."""
        runs: dict[tuple[str, ...], list[Job]] = {}
        for job in self.jobs:
            runs.setdefault(tuple(job.cell.words(job.seed)), []).append(job)
        return list(runs.values())

    def _run_folder_name(self, cell: Cell) -> str:
        """The name of the folder of a cell's runs: cells with the same words share it."""
        first = next(candidate for candidate in self.table.cells if candidate.overrides == cell.overrides)
        return f"{first.folder}-{first.run}"

    def _prepare(self, composer: Composer, config: DictConfig, jobs: list[Job]) -> Path | None:
        """Creates the folder of a run; None if the run would end after the budget.

        A config that is there must be of the same run, but is not used: it may be planted.
        """
        first = jobs[0]
        spent = time.monotonic() - self.start_time
        if spent + 60 * (first.cell.minutes or 0.0) > self.budget_s:
            return None
        composed = compose_point(composer, config, first.point)
        run_config = resolve_point(composer, composed, first.point)
        folder = (self.folder / RUNS / self._run_folder_name(first.cell) / str(first.seed)).absolute()
        refuse_special_files(folder)
        saved = saved_config.read(folder).config if saved_config.exists(folder) else run_config
        if changed := changed_keys(saved, run_config):
            raise ConfigError(f"{display_path(folder)} holds another run than the table asks for: {changed}; remove it")
        saved_config.save(folder, composed, run_config)
        return folder

    def _record_result(self, job: Job, end: PointEnd) -> None:
        if end.code:
            self.failed.append(FailedRun(job, end))
            text = "failed"
        else:
            result = read_result(job, end.folder)
            results.add(self.folder, self.table, result)
            text = result.value_text
        print_text(f"{job}: {text}\n")


def describe_provenance(summary: Mapping[str, Any]) -> str:
    """The versions, the device and its instructions, on which bits depend, as the run recorded them."""
    versions, instructions = summary.get("versions") or {}, summary.get("instructions") or "unknown"
    return f"fedexp {versions.get('fedexp')}, torch {versions.get('torch')}, {summary.get('device')} {instructions}"


def read_result(job: Job, folder: Path) -> Result:
    """Reads the result of a finished run.

    Raises:
        ConfigError: its folder does not have what is measured.
    """
    run, summary = runs.read(folder), summary_json.read(folder)
    if summary is None:
        raise ConfigError(f"{display_path(folder)} has not finished; remove it and run the table again")
    last = [line["digest"] for line in run_tables.read_lines(folder / digests.NAME, digests.COLUMNS)][-1:]
    return Result(
        cell=job.cell.name,
        seed=job.seed,
        asked=job.cell.fingerprint,
        value=_read_value(job, run),
        rounds=int(run.rounds[-1]),
        digest="".join(last),
        seconds=round(float(summary.get("host_s") or 0.0), 1),
        made_by=describe_provenance(summary),
        commit=str((summary.get("git") or {}).get("commit", ""))[:12],
    )


def _read_value(job: Job, run: runs.Run) -> float | None:
    try:
        return job.cell.measure.of(run)
    except ConfigError as error:
        columns = [str(name) for name in run.metrics if not np.isnan(run.column(str(name))).all()]
        hint = did_you_mean(job.cell.measure.column, columns)
        raise ConfigError(f"cell {job.cell.name}: measure {job.cell.measure.text}: {error}; {hint}") from error
