"""Jobs with a limited time: jobs that do not fit are skipped, and their time is estimated from those that were done.

A crew sees only jobs, so no algorithm is mentioned here. Each stage of a round (jobs of one kind, until another kind
comes) may take two thirds of the time that is left; of a kind that is new, one job is always tried. A training job may
be stopped halfway. The time of the rest is estimated by its effort (steps, examples, models) at the rate of the tried
part. Missing results are sampled from those that were computed, so that the round can go on. Such results mean nothing:
only times are taken from these rounds.

All processes of a group make the same decisions: the clock, which differs between them, decides only which jobs they
do, and their reports on these are summed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from fedexp.core.errors import RunError
from fedexp.training.workers import TRAINING, Crew, Kind, T, Work

SHARE = 2 / 3  # of the time that is left, for one stage
WARM, FEW = 2, 6  # first steps of a training job: those not timed, and those always taken
KEPT = 2**18  # numbers of a kind's results that are kept for sampling


class TimeIsUpError(Exception):
    """A training job is stopped after a share of its steps; the others would take `longer` seconds."""

    def __init__(self, share: float, longer: float) -> None:
        super().__init__(f"given up after {share:.0%}")
        self.share, self.longer = share, longer


class EnoughError(RunError):
    """A round could only be tried in part: trying another would tell no more."""


@dataclass
class Tally:
    """What is known of the jobs of one kind: `done` out of `asked` units, and the seconds for an effort."""

    effort: float = 0.0
    seconds: float = 0.0
    done: float = 0.0
    asked: float = 0.0
    sample: torch.Tensor | None = None

    @property
    def rate(self) -> float:
        """Seconds that one process takes for one unit of effort."""
        return self.seconds / self.effort if self.effort else 0.0


@dataclass(frozen=True)
class Saving:
    """Seconds that a call of the crew would have taken longer, when it ended, and in which stage of a round."""

    when: float
    stage: str
    seconds: float


@dataclass
class Ration:
    """The time available, and what was measured in it."""

    seconds: float
    ends: float = 0.0  # by the clock; set when the first job comes
    stage: str = ""  # the present one
    limit: float = 0.0  # when this stage must end
    tallies: dict[Kind, Tally] = field(default_factory=dict)
    savings: list[Saving] = field(default_factory=list)

    def enter(self, stage: str) -> None:
        """Begins a stage, if it is not the present one."""
        now = time.perf_counter()
        self.ends = self.ends or now + self.seconds
        if stage != self.stage:
            self.stage, self.limit = stage, now + SHARE * max(0.0, self.ends - now)

    @property
    def up(self) -> bool:
        """Whether the stage has used up its time."""
        return time.perf_counter() >= self.limit

    def tally(self, kind: Kind) -> Tally:
        """What is known of a kind."""
        return self.tallies.setdefault(kind, Tally())

    def saved(self, since: float, until: float, stage: str | None = None) -> float:
        """Estimated seconds of skipped work between two times, in one stage or in all."""
        some = (each for each in self.savings if since < each.when <= until)
        return sum(each.seconds for each in some if stage in (None, each.stage))

    @property
    def parts(self) -> list[str]:
        """What was tried in part, in words."""
        some = ((kind, tally) for kind, tally in self.tallies.items() if tally.asked - tally.done > 1e-6 * tally.asked)
        return [f"{kind.stage}: {_told(tally)} {kind.unit}, the rest by {kind.cost}" for kind, tally in some]


class Rationed(Crew):
    """A crew that does as much of its work as a ration of time allows."""

    times_jobs = True

    def __init__(self, crew: Crew, ration: Ration) -> None:
        super().__init__()
        self.crew, self.ration = crew, ration
        self.rank, self.size = crew.rank, crew.size
        self.warm_at = 0.0

    def defer(self, work: Work) -> None:
        if self.size > 1:
            self.background.append(work)
        else:
            self._do([work])

    def alone(self, work: Work) -> None:
        Rationed(Crew(), self.ration)._do([work])

    def agree(self, value: T) -> T:
        return self.crew.agree(value)

    def regrouped(self, crew: Crew) -> Crew:
        return self if crew is self else Rationed(crew, self.ration)

    def watch(self, done: int, steps: int) -> None:
        if done <= WARM:
            self.warm_at = time.perf_counter()
        elif done >= FEW and self.ration.up:
            pace = (time.perf_counter() - self.warm_at) / (done - WARM)
            raise TimeIsUpError(done / steps, (steps - done) * pace)

    def _do(self, works: list[Work]) -> None:
        works = [work for work in works if work.jobs]
        if not works:
            return
        if works[0].kind == TRAINING and self.ration.savings and self.ration.tally(TRAINING).asked:
            raise EnoughError("enough is tried")
        self.ration.enter(works[0].kind.stage)
        jobs, needed = self._ordered(works)
        report = torch.zeros((len(jobs), 3), dtype=torch.float64, device=works[0].out.device)
        for position in self.crew.claim(len(jobs)):
            if position >= needed and self.ration.up:
                break
            report[position] = torch.tensor(_tried(*jobs[position]), dtype=torch.float64)
        self.crew.gather([*(work.out for work in works), report])
        self._count(works, jobs, report.cpu().numpy())

    def _ordered(self, works: list[Work]) -> tuple[list[tuple], int]:
        """All jobs, and how many come first: one of each kind of which nothing is known yet."""
        jobs = [(work, rows, job) for work in works for rows, job in work.jobs]
        first: dict[Kind, int] = {}
        for position, (work, _, _) in enumerate(jobs):
            if self._unknown(work):
                first.setdefault(work.kind, position)
        chosen = set(first.values())
        rest = [job for position, job in enumerate(jobs) if position not in chosen] if chosen else jobs
        return [*(jobs[position] for position in first.values()), *rest], len(first)

    def _unknown(self, work: Work) -> bool:
        tally = self.ration.tallies.get(work.kind)
        return tally is None or not tally.effort or not _fits(tally.sample, work)

    def _count(self, works: list[Work], jobs: list[tuple], report: np.ndarray) -> None:
        """Adds up the jobs that were done, estimates those that were not, and fills in their results."""
        share, seconds, rest = report.T
        effort = np.array([_effort(work, rows) for work, rows, _ in jobs])
        longer = 0.0
        for kind in dict.fromkeys(work.kind for work in works):
            mine, tally = np.array([work.kind == kind for work, _, _ in jobs]), self.ration.tally(kind)
            amount = np.array([_amount(kind, work, rows) for work, rows, _ in jobs if work.kind == kind])
            priced = mine & (share > 0)
            tally.effort += float(effort[priced].sum())
            tally.seconds += float((seconds + rest)[priced].sum())
            tally.done += float((share[mine] * amount).sum())
            tally.asked += float(amount.sum())
            left = tally.rate * float(effort[mine & (share == 0)].sum()) + float(rest[mine].sum())
            longer += left / min(self.size, int(mine.sum()))
        if longer:
            self.ration.savings.append(Saving(time.perf_counter(), works[0].kind.stage, longer))
        for work in works:
            whole = [rows for (owner, rows, _), part in zip(jobs, share, strict=True) if owner is work and part == 1]
            self._fill(work, np.concatenate([*whole, np.zeros(0, np.int64)]).astype(np.int64))

    def _fill(self, work: Work, done: np.ndarray) -> None:
        """Fills missing results with sampled ones; clients' rows are changed a little, as no two are equal."""
        tally = self.ration.tally(work.kind)
        if len(done):
            few = max(1, KEPT // max(1, work.out[0].numel()))
            tally.sample = work.out[torch.from_numpy(done[:few])].clone()
        lacking = np.setdiff1d(np.concatenate([rows for rows, _ in work.jobs]), done)
        if not len(lacking) or tally.sample is None or not _fits(tally.sample, work):
            return
        chosen = np.random.default_rng(len(self.ration.savings)).integers(len(tally.sample), size=len(lacking))
        work.out[torch.from_numpy(lacking)] = tally.sample[torch.from_numpy(chosen)]
        if work.kind.unit == "clients":  # no two rows may be equal
            for order, row in enumerate(lacking.tolist()):
                work.out[row] *= 1 + 0.1 * (order + 1) / len(lacking)


def _tried(work: Work, rows: np.ndarray, job: Callable[[], torch.Tensor]) -> tuple[float, float, float]:
    """Does a job: the share of it that was done, the seconds, and the seconds that the rest would take."""
    begun, share, longer = time.perf_counter(), 1.0, 0.0
    try:
        work.out[torch.from_numpy(rows)] = job()
    except TimeIsUpError as up:
        share, longer = up.share, up.longer
    return share, time.perf_counter() - begun, longer


def _effort(work: Work, rows: np.ndarray) -> float:
    return float(len(rows) if work.effort is None else work.effort[rows].sum())


def _amount(kind: Kind, work: Work, rows: np.ndarray) -> float:
    """The amount in the kind's unit: clients, or the effort."""
    return float(len(rows)) if kind.unit == "clients" else _effort(work, rows)


def _fits(sample: torch.Tensor | None, work: Work) -> bool:
    return sample is not None and sample.shape[1:] == work.out.shape[1:]


def _told(tally: Tally) -> str:
    asked = round(tally.asked)
    done = tally.done if tally.done < 10 else round(tally.done)
    return f"{done:,.3g} of {asked:,}" if done < 1000 else f"{done:,} of {asked:,}"
