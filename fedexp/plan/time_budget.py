"""Jobs with a limited time: jobs that do not fit are skipped, and their time is estimated from those that were done.

A pool of workers sees only jobs, so no algorithm is mentioned here. Each stage of a round (jobs of one kind, until
another kind comes) may take two thirds of the time that is left; of a kind that is new, one job is always tried. A
training job may be stopped halfway. The time of the rest is estimated by its effort (steps, examples, models) at the
rate of the tried part. Missing results are sampled from those that were computed, so that the round can go on. Such
results mean nothing: only times are taken from these rounds.

All processes of a group make the same decisions: the clock, which differs between them, decides only which jobs they
do, and their reports on these are summed.
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
    """Statistics of the jobs of one kind: units done and requested, and the seconds for an effort."""

    effort: float = 0.0
    seconds: float = 0.0
    done: float = 0.0
    requested: float = 0.0
    sample: torch.Tensor | None = None

    @property
    def rate(self) -> float:
        """Seconds that one process takes for one unit of effort."""
        return self.seconds / self.effort if self.effort else 0.0


@dataclass(frozen=True)
class SkippedTime:
    """Seconds that a call of the pool would have taken longer, when it ended, and in which stage of a round."""

    end: float
    stage: str
    seconds: float


@dataclass
class TimeBudget:
    """The time available, and what was measured in it."""

    seconds: float
    deadline: float = 0.0  # by the clock; set when the first job comes
    stage: str = ""  # the present one
    stage_deadline: float = 0.0  # when this stage must end
    tallies: dict[JobKind, Tally] = field(default_factory=dict)
    skipped_times: list[SkippedTime] = field(default_factory=list)

    def enter_stage(self, stage: str) -> None:
        """Begins a stage, if it is not the present one."""
        now = time.perf_counter()
        self.deadline = self.deadline or now + self.seconds
        if stage != self.stage:
            self.stage, self.stage_deadline = stage, now + STAGE_SHARE * max(0.0, self.deadline - now)

    @property
    def is_stage_over(self) -> bool:
        """Whether the stage has used up its time."""
        return time.perf_counter() >= self.stage_deadline

    def tally(self, kind: JobKind) -> Tally:
        """What is known of a kind."""
        return self.tallies.setdefault(kind, Tally())

    def skipped_seconds(self, since: float, until: float, stage: str | None = None) -> float:
        """Estimated seconds of skipped work between two times, in one stage or in all."""
        some = (skipped for skipped in self.skipped_times if since < skipped.end <= until)
        return sum(skipped.seconds for skipped in some if stage in (None, skipped.stage))

    @property
    def partial_stages(self) -> list[str]:
        """What was tried in part, in words."""
        some = (
            (kind, tally)
            for kind, tally in self.tallies.items()
            if tally.requested - tally.done > 1e-6 * tally.requested
        )
        return [f"{kind.stage}: {_done_text(tally)} {kind.unit}, the rest by {kind.cost}" for kind, tally in some]


class BudgetedPool(WorkerPool):
    """A pool of workers that does as much of its work as a budget of time allows."""

    times_jobs = True

    def __init__(self, pool: WorkerPool, budget: TimeBudget) -> None:
        super().__init__()
        self.pool, self.budget = pool, budget
        self.rank, self.size = pool.rank, pool.size
        self.warm_at = 0.0

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
        if done <= WARMUP_STEPS:
            self.warm_at = time.perf_counter()
        elif done >= MIN_STEPS and self.budget.is_stage_over:
            pace = (time.perf_counter() - self.warm_at) / (done - WARMUP_STEPS)
            raise JobCutShortError(done / steps, (steps - done) * pace)

    def _run_jobs(self, works: list[Work]) -> None:
        works = [work for work in works if work.jobs]
        if not works:
            return
        if works[0].kind == TRAINING and self.budget.skipped_times and self.budget.tally(TRAINING).requested:
            raise PartialRoundError("enough is tried")
        self.budget.enter_stage(works[0].kind.stage)
        jobs, needed = self._order_jobs(works)
        report = torch.zeros((len(jobs), 3), dtype=torch.float64, device=works[0].out.device)
        for position in self.pool.claim(len(jobs)):
            if position >= needed and self.budget.is_stage_over:
                break
            report[position] = torch.tensor(_try_job(*jobs[position]), dtype=torch.float64)
        self.pool.all_reduce([*(work.out for work in works), report])
        self._count_jobs(works, jobs, report.cpu().numpy())

    def _order_jobs(self, works: list[Work]) -> tuple[list[tuple], int]:
        """All jobs, and how many come first: one of each kind of which nothing is known yet."""
        jobs = [(work, rows, job) for work in works for rows, job in work.jobs]
        first: dict[JobKind, int] = {}
        for position, (work, _, _) in enumerate(jobs):
            if self._is_untimed(work):
                first.setdefault(work.kind, position)
        chosen = set(first.values())
        other_jobs = [job for position, job in enumerate(jobs) if position not in chosen] if chosen else jobs
        return [*(jobs[position] for position in first.values()), *other_jobs], len(first)

    def _is_untimed(self, work: Work) -> bool:
        tally = self.budget.tallies.get(work.kind)
        return tally is None or not tally.effort or not _fits(tally.sample, work)

    def _count_jobs(self, works: list[Work], jobs: list[tuple], report: np.ndarray) -> None:
        """Adds up the jobs that were done, estimates those that were not, and fills in their results."""
        share, seconds, remaining = report.T
        effort = np.array([_effort(work, rows) for work, rows, _ in jobs])
        total_skipped_s = 0.0
        for kind in dict.fromkeys(work.kind for work in works):
            of_kind, tally = np.array([work.kind == kind for work, _, _ in jobs]), self.budget.tally(kind)
            amount = np.array([_amount(kind, work, rows) for work, rows, _ in jobs if work.kind == kind])
            timed = of_kind & (share > 0)
            tally.effort += float(effort[timed].sum())
            tally.seconds += float((seconds + remaining)[timed].sum())
            tally.done += float((share[of_kind] * amount).sum())
            tally.requested += float(amount.sum())
            skipped_s = tally.rate * float(effort[of_kind & (share == 0)].sum()) + float(remaining[of_kind].sum())
            total_skipped_s += skipped_s / min(self.size, int(of_kind.sum()))
        if total_skipped_s:
            self.budget.skipped_times.append(SkippedTime(time.perf_counter(), works[0].kind.stage, total_skipped_s))
        for work in works:
            complete = [rows for (owner, rows, _), part in zip(jobs, share, strict=True) if owner is work and part == 1]
            self._fill_missing(work, np.concatenate([*complete, np.zeros(0, np.int64)]).astype(np.int64))

    def _fill_missing(self, work: Work, done: np.ndarray) -> None:
        """Fills missing results with sampled ones; clients' rows are changed a little, as no two are equal."""
        tally = self.budget.tally(work.kind)
        if len(done):
            few = max(1, SAMPLE_SIZE // max(1, work.out[0].numel()))
            tally.sample = work.out[torch.from_numpy(done[:few])].clone()
        missing = np.setdiff1d(np.concatenate([rows for rows, _ in work.jobs]), done)
        if not len(missing) or tally.sample is None or not _fits(tally.sample, work):
            return
        chosen = np.random.default_rng(len(self.budget.skipped_times)).integers(len(tally.sample), size=len(missing))
        work.out[torch.from_numpy(missing)] = tally.sample[torch.from_numpy(chosen)]
        if work.kind.unit == "clients":  # no two rows may be equal
            for order, row in enumerate(missing.tolist()):
                work.out[row] *= 1 + 0.1 * (order + 1) / len(missing)


def _try_job(work: Work, rows: np.ndarray, job: Callable[[], torch.Tensor]) -> tuple[float, float, float]:
    """Does a job: the share of it that was done, the seconds, and the seconds that the rest would take."""
    started, share, remaining_s = time.perf_counter(), 1.0, 0.0
    try:
        work.out[torch.from_numpy(rows)] = job()
    except JobCutShortError as up:
        share, remaining_s = up.share, up.remaining_s
    return share, time.perf_counter() - started, remaining_s


def _effort(work: Work, rows: np.ndarray) -> float:
    return float(len(rows) if work.effort is None else work.effort[rows].sum())


def _amount(kind: JobKind, work: Work, rows: np.ndarray) -> float:
    """The amount in the kind's unit: clients, or the effort."""
    return float(len(rows)) if kind.unit == "clients" else _effort(work, rows)


def _fits(sample: torch.Tensor | None, work: Work) -> bool:
    return sample is not None and sample.shape[1:] == work.out.shape[1:]


def _done_text(tally: Tally) -> str:
    requested = round(tally.requested)
    done = tally.done if tally.done < 10 else round(tally.done)
    return f"{done:,.3g} of {requested:,}" if done < 1000 else f"{done:,} of {requested:,}"
