"""Runs the missing runs of a table, cheapest cells first, and saves the result of each as soon as it has ended.

A run's folder is NAME/runs/CELL/SEED; one that was cut off goes on where it stopped. Cells that ask for other numbers
of the same words share it. Its lines in results.csv are all that the page needs, so folders of runs may be removed.
"""

import math
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

from fedexp.config import noted
from fedexp.config.compose import Composer, Request, settings, start
from fedexp.config.location import conf_dir
from fedexp.config.trust import Trust
from fedexp.core import csv_table, summary_json
from fedexp.core.errors import ConfigError, some
from fedexp.core.files import shown
from fedexp.core.open_folders import make_folder, open_folder
from fedexp.core.own_files import refuse_strange
from fedexp.replay import results
from fedexp.replay.results import Result
from fedexp.replay.table import Cell, PublishedTable
from fedexp.report import runs
from fedexp.run import digests
from fedexp.run.checkpoint import differing
from fedexp.sweep.launchers.contract import PointEnd
from fedexp.sweep.points import Point, compose, composed, configured
from fedexp.sweep.sweep import launcher_of
from fedexp.sweep.worker import live

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
class Failed:
    """A run that failed, and how it ended."""

    job: Job
    end: PointEnd

    def __str__(self) -> str:
        return f"{self.job}: {self.end.message}; see {shown(self.end.folder)}"


def missing(table: PublishedTable, folder: Path, pattern: str, seeds: int | None) -> list[Job]:
    """The runs that have no result yet, cheapest cells first: every cell's first seed comes before its second.

    Raises:
        ConfigError: no cell is called so.
    """
    cells = [cell for cell in table.cells if fnmatchcase(cell.name, pattern)]
    if not cells:
        names = some(pattern, [cell.name for cell in table.cells], "; ")
        raise ConfigError(f"--cells must match a cell of {table.name}, got {pattern}; there: {names}")
    held = results.read(folder)
    done = {(one.cell, one.seed) for cell in cells for one in results.of_cell(held, cell)}
    wanted = [(cell, seed) for cell in cells for seed in range(cell.seeds if seeds is None else seeds)]
    left = [(cell, seed) for cell, seed in wanted if (cell.name, seed) not in done]
    left.sort(key=lambda one: one[0].minutes or 0.0)
    return [Job(number, *one) for number, one in enumerate(left)]


@dataclass
class Replay:
    """The missing runs, and the folder that holds the table's results; `words` choose a launcher."""

    table: PublishedTable
    folder: Path
    jobs: Sequence[Job]
    words: Sequence[str] = ()
    budget_s: float = math.inf
    begun: float = field(default_factory=time.monotonic)
    flying: dict[Path, list[Job]] = field(default_factory=dict)
    failed: list[Failed] = field(default_factory=list)

    def execute(self) -> list[Failed]:
        """Runs them until the budget is spent; returns those that failed.

        Raises:
            ConfigError: a cell cannot work, or there is no such launcher; nothing has run then.
        """
        request = Request(conf_dir(), list(self.words))
        composer = start(request)
        try:
            config = compose(composer, request)
            launcher = launcher_of(config)
            if launcher is None:
                raise ConfigError("a replay needs a launcher of fedexp, e.g. hydra/launcher=joblib")
            for job in {job.cell.run: job for job in self.jobs}.values():
                self._check(composer, config, job)
            alive = partial(live, share=None if launcher.aloud else 1, trust=Trust(composed=True))
            make_folder(self.folder)
            todo = self._todo(composer, config)
            with open_folder(self.folder), closing(launcher.launch(todo, alive)) as ends:
                for end in ends:
                    self._ended(end)
        finally:
            GlobalHydra.instance().clear()
        return self.failed

    def _check(self, composer: Composer, config: DictConfig, job: Job) -> None:
        try:
            configured(composer, config, job.point)
        except ConfigError as error:
            raise ConfigError(f"{self.table.name}, {error}") from error

    def _todo(self, composer: Composer, config: DictConfig) -> Iterator[Path]:
        """Yields the folders of the runs, each created when the launcher takes it."""
        for jobs in self._runs():
            first = jobs[0]
            spent = time.monotonic() - self.begun
            if spent + 60 * (first.cell.minutes or 0.0) > self.budget_s:
                continue
            folder = (self.folder / RUNS / self._place(first.cell) / str(first.seed)).absolute()
            self._prepare(folder, composed(composer, config, first.point))
            self.flying[folder] = jobs
            yield folder

    def _runs(self) -> list[list[Job]]:
        """The jobs grouped by run: several numbers of one run need it once."""
        runs: dict[tuple[str, ...], list[Job]] = {}
        for job in self.jobs:
            runs.setdefault(tuple(job.cell.words(job.seed)), []).append(job)
        return list(runs.values())

    def _place(self, cell: Cell) -> str:
        """The name of the folder of a cell's runs: cells with the same words share it."""
        first = next(other for other in self.table.cells if other.overrides == cell.overrides)
        return f"{first.folder}-{first.run}"

    def _prepare(self, folder: Path, own: DictConfig) -> None:
        """Saves a run's config. One that is there must be of the same run, but is not used: it may be planted."""
        refuse_strange(folder)
        if noted.is_whole(folder):
            if changed := differing(*settings(OmegaConf.create(noted.written(folder)), own)):
                raise ConfigError(f"{shown(folder)} holds another run than the table asks for: {changed}; remove it")
            shutil.rmtree(folder / noted.FOLDER)
        noted.note(folder, own)

    def _ended(self, end: PointEnd) -> None:
        for job in self.flying.pop(end.folder):
            self._told(job, end)

    def _told(self, job: Job, end: PointEnd) -> None:
        if end.code:
            self.failed.append(Failed(job, end))
            told = "failed"
        else:
            result = found(job, end.folder)
            results.add(self.folder, self.table, result)
            told = "not reached" if result.value is None else f"{result.value:.6g}"
        sys.stdout.write(f"{job}: {told}\n")
        sys.stdout.flush()


def made_by(summary: Mapping[str, Any]) -> str:
    """The versions, the device and its instructions, on which bits depend, as the run recorded them."""
    versions, instructions = summary.get("versions") or {}, summary.get("instructions") or "unknown"
    return f"fedexp {versions.get('fedexp')}, torch {versions.get('torch')}, {summary.get('device')} {instructions}"


def found(job: Job, folder: Path) -> Result:
    """Reads the result of a finished run.

    Raises:
        ConfigError: its folder does not have what is measured.
    """
    run, summary = runs.read(folder), summary_json.read(folder)
    if run is None or summary is None:
        raise ConfigError(f"{shown(folder)} has not finished; remove it and run the table again")
    last = [line["digest"] for line in csv_table.lines(folder / digests.NAME, digests.COLUMNS)][-1:]
    return Result(
        cell=job.cell.name,
        seed=job.seed,
        asked=job.cell.asked,
        value=job.cell.measure.of(run),
        rounds=int(run.rounds[-1]),
        digest="".join(last),
        seconds=round(float(summary.get("host_s") or 0.0), 1),
        made_by=made_by(summary),
        commit=str((summary.get("git") or {}).get("commit", ""))[:12],
    )
