"""Tries two rounds of a run, or a few more, in a temporary folder."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NoReturn

import torch

from fedexp.core.values import Uploads
from fedexp.parts.tracker.contract import Tracker
from fedexp.plan.dry_run import round_work, trains_in_lockstep
from fedexp.plan.footprint import gpu_mb, peak_mb, workers_mb
from fedexp.plan.progress import ProgressReporter
from fedexp.plan.time_budget import BudgetedPool, PartialRoundError, TimeBudget
from fedexp.run import digests
from fedexp.run.logbook import Logbook
from fedexp.run.state import checkpoint
from fedexp.run.tables import TABLES
from fedexp.simulation import context
from fedexp.simulation.round import Row
from fedexp.simulation.rounds import reason_to_stop, run_rounds, with_workers
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.workers.pool import TRAINING, WorkerPool

GRACE_S = 15.0  # for work that cannot be tried in part; after it the trial is given up
PATIENCE_S = 2.0  # for rounds after the second, which make the estimate better
MOST = 50
STATES = (checkpoint.NAME, checkpoint.PREVIOUS)


@dataclass(frozen=True)
class TriedRound:
    """One round: its work, its megabytes, its seconds (None if not measured alone), and parts of these."""

    work: float
    row: Row
    seconds: float | None
    evaluation_s: float
    training_s: float


@dataclass
class ProbeResult:
    """The measurements of the tried rounds."""

    tried_rounds: list[TriedRound] = field(default_factory=list)
    first_s: float = 0.0
    worker_start_s: float = 0.0  # until all workers had started
    closing_s: float = 0.0
    save_s: float = 0.0
    workers: int = 1
    memory_mb: float = 0.0
    gpu_mb: float | None = None
    state_mb: float = 0.0  # of the file, after the last tried round
    participants: set[int] = field(default_factory=set)  # clients that have taken part
    state_sizes: list[tuple[int, float]] = field(
        default_factory=list
    )  # after each round, the number of those clients and the state's MB, less the next
    versions_mb: float = 0.0  # of the earlier models that clients train on, after the last tried round
    table_mb: float = 0.0  # of a round's lines
    other_mb: float = 0.0
    reason: str | None = None  # why the stop rule ended the run during the trial
    partial_stages: list[str] = field(default_factory=list)  # what was tried in part, or given up
    gave_up: str | None = None  # why no more was tried

    @property
    def is_whole_run(self) -> bool:
        """Whether the stop rule ended the run within the trial, in which nothing was tried in part."""
        return self.reason is not None and not self.partial_stages


def probe(
    exp: Experiment, world: World, config: dict[str, Any], progress: ProgressReporter, budget_s: float
) -> ProbeResult:
    """Tries two rounds, and more if they are short; only parts of them if time runs out. Leaves nothing behind."""
    evaluation = replace(exp.evaluation, every=1, every_s=None)
    exp = replace(exp, evaluation=evaluation, checkpoint_s=float("inf"), keep_states=0, tracker=Tracker())
    budget = TimeBudget(budget_s)
    world = replace(world, pool=BudgetedPool(WorkerPool(), budget))
    progress.stage = lambda: budget.stage
    with TemporaryDirectory(prefix="fedexp-plan-") as name:
        folder, result = Path(name), ProbeResult()
        with Logbook(folder, exp, world, config, world.initial_state()) as logbook:
            try:
                with time_limit(budget_s + GRACE_S):
                    _try_rounds(exp, logbook, budget, result, progress)
            except TimeLimitExceeded:
                result.gave_up = f"round {logbook.state.round + 1} was not over after {budget_s + GRACE_S:.0f} s"
            progress.stage = str
            if result.tried_rounds:
                progress.begin_step("closing the trial")
                _close(config, logbook, budget, result)
        if result.tried_rounds:
            _measure_files(folder, result)
    result.partial_stages = budget.partial_stages
    if result.partial_stages and exp.stop.looks_at_scores:
        result.reason = None  # the rule looked at models that were not trained whole
    return result


class TimeLimitExceeded(BaseException):
    """Time is up. Not an Exception, so that no handler on the way takes it for an error of its own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeLimitExceeded in a block that does not look at the clock; not in threads or on Windows."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _raise_exceeded)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _raise_exceeded(*_: int | FrameType | None) -> NoReturn:
    raise TimeLimitExceeded


def _try_rounds(
    exp: Experiment, logbook: Logbook, budget: TimeBudget, result: ProbeResult, progress: ProgressReporter
) -> None:
    try:
        _try(replace(exp, rounds=min(2, exp.rounds)), logbook, budget, result, progress)
        further = _count_further_rounds(result, exp.rounds - 2)
        if further and result.reason is None:
            _try(replace(exp, rounds=2 + further), logbook, budget, result, progress)
    except PartialRoundError:
        return


def _count_further_rounds(result: ProbeResult, remaining: int) -> int:
    """How many more rounds are worth trying; the first of them is not measured alone, so it takes at least two."""
    seconds = result.tried_rounds[-1].seconds
    count = 0 if not seconds else min(remaining, MOST, int(PATIENCE_S / seconds))
    return count if count > 1 else 0


def _try(
    exp: Experiment, logbook: Logbook, budget: TimeBudget, result: ProbeResult, progress: ProgressReporter
) -> None:
    state, before = logbook.state, None
    first, last = state.round + 1, exp.rounds
    progress.begin_step(
        f"round {first} of the trial" if first == 1 else f"{last + 1 - first} more rounds, as they are short"
    )
    started = time.perf_counter()
    with with_workers(exp, logbook.world, state) as world:
        zero = time.perf_counter() - state.host_s
        result.worker_start_s, result.workers = time.perf_counter() - started, world.pool.size
        for after, row, uploads in run_rounds(exp, world, state):
            window = (zero + (before or state.host_s), zero + row["host_s"])
            skipped_s = budget.skipped_seconds(*window), budget.skipped_seconds(*window, TRAINING.stage)
            _record_round(world, row, uploads, before, skipped_s, result)
            before = row["host_s"]
            logbook.record(after, row, uploads)
            _measure_memory(world, result)
            result.participants.update(uploads.owner.tolist())
            result.versions_mb = megabytes(exp.pacing.versions(after.memory.get("pacing", {})))
            state_mb = megabytes((after.memory, [weights.flat for weights in after.models])) - result.versions_mb
            result.state_sizes.append((len(result.participants), state_mb))
            if first == 1 and after.round < last:
                progress.begin_step(f"round {after.round + 1} of the trial")
    result.reason = reason_to_stop(logbook.state)


def _record_round(
    world: World, row: Row, uploads: Uploads, before: float | None, skipped_s: tuple[float, float], result: ProbeResult
) -> None:
    """Notes a round; `skipped_s` are the seconds that it, and its training, would take beyond the measured ones."""
    if not result.tried_rounds:
        result.first_s = row["host_s"] + skipped_s[0]
    done = round_work(context.make_context(world, row["round"]), uploads.examples, trains_in_lockstep(world))
    seconds = None if before is None else row["host_s"] - before + skipped_s[0]
    training_s = row["train_s"] + skipped_s[1]
    result.tried_rounds.append(TriedRound(done, row, seconds, row.get("evaluate_s", 0.0) / result.workers, training_s))


def megabytes(node: Any) -> float:
    """The size of all tensors in a nested value."""
    if isinstance(node, torch.Tensor):
        return node.numel() * node.element_size() / 1e6
    if isinstance(node, dict):
        return sum(map(megabytes, node.values()))
    return sum(map(megabytes, node)) if isinstance(node, tuple | list) else 0.0


def _measure_memory(world: World, result: ProbeResult) -> None:
    """Called after each round; the workers still run then, except after the last."""
    result.memory_mb = max(result.memory_mb, peak_mb() + workers_mb(os.getpid()))
    result.gpu_mb = gpu_mb(world.first.flat.device)


def _close(config: dict[str, Any], logbook: Logbook, budget: TimeBudget, result: ProbeResult) -> None:
    started = time.perf_counter()
    checkpoint.save(logbook.folder, logbook.state, config, {})
    result.save_s = time.perf_counter() - started
    started = time.perf_counter()
    logbook.conclude()
    result.closing_s = time.perf_counter() - started + budget.skipped_seconds(started, time.perf_counter())
    result.memory_mb = max(result.memory_mb, peak_mb())


def _measure_files(folder: Path, result: ProbeResult) -> None:
    sizes = {path.name: path.stat().st_size / 1e6 for path in folder.rglob("*") if path.is_file()}
    result.state_mb = sizes[checkpoint.NAME]
    result.table_mb = sum(sizes.get(name, 0.0) for name in (*TABLES, digests.NAME)) / len(result.tried_rounds)
    result.other_mb = sum(size for name, size in sizes.items() if name not in (*TABLES, digests.NAME, *STATES))
