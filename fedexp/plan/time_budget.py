"""Jobs with a limited time: jobs that do not fit are skipped, and their time is estimated from those that were done.

A pool of workers sees only jobs, so no algorithm is mentioned here. Each stage of a round (jobs of one kind, until
another kind comes) may take two thirds of the time that is left; of a kind that is new, one job is always tried. A
training job may be stopped halfway. The time of the rest is estimated by its effort (steps, examples, models) at the
rate of the tried part. Missing results are sampled from those that were computed, so that the round can go on. Such
results mean nothing: only times are taken from these rounds.

The clock, which differs between the processes of a group, decides only which jobs they do; their reports on these are
summed, so all of them count the same.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from fedexp.core.errors import RunError
from fedexp.training.workers.pool import TRAINING, JobKind, T, Work, WorkerPool

STAGE_SHARE = 2 / 3  # of the time that is left, for one stage
WARMUP_STEPS, MIN_STEPS = 2, 6  # first steps of a training job: those not timed, and those always taken
SLOW_STEP_S = 0.5  # of a step from which on all are timed, and one is enough
SAMPLE_SIZE = 2**18  # numbers of a kind's results that are kept for sampling


class JobCutShortError(Exception):
    """A training job is stopped after a share of its steps; the others would take `remaining_s` seconds."""

    def __init__(self, share: float, remaining_s: float) -> None:
        super().__init__(f"given up after {share:.0%}")
        self.share, self.remaining_s = share, remaining_s


class PartialRoundError(RunError):
    """A round could only be tried in part: trying another would tell no more."""


@dataclass
class Tally:
    """Statistics of the jobs of one kind: units done and requested, the seconds for an effort, and some results."""

    effort: float = 0.0
    seconds: float = 0.0
    done: float = 0.0
    requested: float = 0.0
    sample: torch.Tensor | None = None

    def __str__(self) -> str:
        return f"{self.done:{'.3g' if self.done < 100 else ',.0f'}} of {self.requested:,.0f}"

    def can_replace(self, work: Work) -> bool:
        """Whether the time and the results of such work can be estimated without doing any of it."""
        return self.effort > 0 and self.sample is not None and self.sample.shape[1:] == work.out.shape[1:]


@dataclass
class TimeBudget:
    """The time available, and what was measured in it."""

    seconds: float
    deadline: float = 0.0  # by the clock; set when the first job comes
    stage: str = ""  # the present one
    stage_deadline: float = 0.0  # when this stage must end
    round: int | None = None  # of the present training
    tallies: dict[JobKind, Tally] = field(default_factory=dict)
    skipped: list[tuple[float, str, float]] = field(default_factory=list)  # end of a call, its stage, skipped seconds

    def enter_stage(self, stage: str) -> None:
        """Begins a stage, if it is not the present one."""
        now = time.perf_counter()
        self.deadline = self.deadline or now + self.seconds
        if stage != self.stage:
            self.stage, self.stage_deadline = stage, now + STAGE_SHARE * max(0.0, self.deadline - now)

    def enter_round(self, round: int) -> None:
        """Begins the training of a round, or goes on with it.

        Raises:
            PartialRoundError: the round before was tried only in part.
        """
        if self.round not in (None, round) and self.skipped:
            raise PartialRoundError("enough is tried")
        self.round = round

    @property
    def is_stage_over(self) -> bool:
        """Whether the stage has used up its time."""
        return time.perf_counter() >= self.stage_deadline

    def tally(self, kind: JobKind) -> Tally:
        """What is known of a kind."""
        return self.tallies.setdefault(kind, Tally())

    def skipped_seconds(self, since: float, until: float, stage: str | None = None) -> float:
        """Estimated seconds of skipped work between two times, in one stage or in all."""
        return sum(seconds for end, name, seconds in self.skipped if since < end <= until and stage in (None, name))

    @property
    def partial_stages(self) -> list[str]:
        """What was tried in part, in words."""
        return [
            f"{kind.stage}: {tally} {kind.unit}, the rest by {kind.cost}"
            for kind, tally in self.tallies.items()
            if tally.requested - tally.done > 1e-6 * tally.requested
        ]


class BudgetedPool(WorkerPool):
    """A pool of workers that does as much of its work as a budget of time allows."""

    times_jobs = True

    def __init__(self, pool: WorkerPool, budget: TimeBudget) -> None:
        super().__init__()
        self.pool, self.budget = pool, budget
        self.rank, self.size = pool.rank, pool.size
        self.started_at = self.warm_at = 0.0
        self.warm_steps = 0  # of the present job, before those that are timed

    def defer(self, work: Work) -> None:
        if self.size > 1:
            self.background.append(work)
        else:
            self._run_jobs([work])

    def run_locally(self, work: Work) -> None:
        BudgetedPool(WorkerPool(), self.budget)._run_jobs([work])

    def broadcast(self, value: T) -> T:
        return self.pool.broadcast(value)

    def rebind(self, pool: WorkerPool) -> WorkerPool:
        return self if pool is self else BudgetedPool(pool, self.budget)

    def watch(self, done: int, steps: int) -> None:
        now = time.perf_counter()
        if done == 0:
            self.started_at = now
        is_slow = now - self.started_at > SLOW_STEP_S * done > 0
        if done == 0 or (done <= WARMUP_STEPS and not is_slow):
            self.warm_at, self.warm_steps = now, done
        elif (done >= MIN_STEPS or is_slow) and self.budget.is_stage_over:
            pace = (now - self.warm_at) / (done - self.warm_steps)
            raise JobCutShortError(done / steps, (steps - done) * pace)

    def _run_jobs(self, works: list[Work]) -> None:
        works = [work for work in works if work.jobs]
        if not works:
            return
        if works[0].kind == TRAINING:
            self.budget.enter_round(works[0].round)
        self.budget.enter_stage(works[0].kind.stage)
        jobs = [(work, rows, job) for work in works for rows, job in work.jobs]
        report, tried = torch.zeros((len(jobs), 3), dtype=torch.float64, device=works[0].out.device), set()
        for position in self.pool.claim(len(jobs)):
            work, rows, job = jobs[position]
            needed = work.kind not in tried and not self.budget.tally(work.kind).can_replace(work)
            if needed or not self.budget.is_stage_over:
                tried.add(work.kind)
                report[position] = torch.tensor(_try_job(work, rows, job), dtype=torch.float64)
        self.pool.all_reduce([*(work.out for work in works), report])
        reports = report.cpu().split([len(work.jobs) for work in works])
        skipped_s = sum(self._count(work, part.numpy()) for work, part in zip(works, reports, strict=True))
        if skipped_s:
            self.budget.skipped.append((time.perf_counter(), works[0].kind.stage, skipped_s))

    def _count(self, work: Work, report: np.ndarray) -> float:
        """Adds up the jobs that were done and fills in the results of the others; returns their estimated seconds."""
        tally, (share, seconds, remaining) = self.budget.tally(work.kind), report.T
        clients = np.array([len(rows) for rows, _ in work.jobs])
        effort = clients if work.effort is None else np.array([work.effort[rows].sum() for rows, _ in work.jobs])
        amount = clients if work.kind.unit == "clients" else effort
        tally.effort += float(effort[share > 0].sum())
        tally.seconds += float(seconds.sum() + remaining.sum())
        tally.done += float((share * amount).sum())
        tally.requested += float(amount.sum())
        complete = [rows for (rows, _), part in zip(work.jobs, share, strict=True) if part == 1]
        self._fill_missing(work, tally, np.concatenate([np.zeros(0, np.int64), *complete]))
        untried_s = tally.seconds / tally.effort * float(effort[share == 0].sum()) if tally.effort else 0.0
        return (untried_s + float(remaining.sum())) / min(self.size, len(work.jobs))

    def _fill_missing(self, work: Work, tally: Tally, done: np.ndarray) -> None:
        """Fills missing results with sampled ones; clients' rows are changed a little, as no two are equal."""
        if len(done):
            few = max(1, SAMPLE_SIZE // max(1, work.out[0].numel()))
            tally.sample = work.out[torch.from_numpy(done[:few])].clone()
        missing = np.setdiff1d(np.concatenate([rows for rows, _ in work.jobs]), done)
        if not len(missing) or tally.sample is None or not tally.can_replace(work):
            return
        chosen = np.random.default_rng(len(self.budget.skipped)).integers(len(tally.sample), size=len(missing))
        work.out[torch.from_numpy(missing)] = tally.sample[torch.from_numpy(chosen)]
        if work.kind.unit == "clients":
            change = 1 + 0.1 * torch.arange(1, len(missing) + 1, device=work.out.device) / len(missing)
            work.out[torch.from_numpy(missing)] *= change.view(-1, *[1] * (work.out.dim() - 1))


def _try_job(work: Work, rows: np.ndarray, job: Callable[[], torch.Tensor]) -> tuple[float, float, float]:
    """Does a job: the share of it that was done, the seconds, and the seconds that the rest would take."""
    started, share, remaining_s = time.perf_counter(), 1.0, 0.0
    try:
        work.out[torch.from_numpy(rows)] = job()
    except JobCutShortError as up:
        share, remaining_s = up.share, up.remaining_s
    return share, time.perf_counter() - started, remaining_s
