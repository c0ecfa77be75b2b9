"""From tried rounds to a whole run: training time grows with the work, the rest is the same each round."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

import numpy as np

from fedexp.plan.dry_run import DryRun
from fedexp.plan.probe import ProbeResult
from fedexp.simulation.setup.experiment import Experiment


@dataclass(frozen=True)
class RunOutline:
    """What is known of all rounds: number, work of each (None if it depends on training), and how states are saved."""

    rounds: int
    work: tuple[float, ...] | None
    clients: int  # upper bound of those that take part
    evaluations: int  # of models, one a round at most
    checkpoint_s: float
    keep_states: int
    versions_mb: float = 0.0  # of the earlier models that clients train on at most

    @property
    def kept_states(self) -> int:
        """How many states stay in the folder besides the newest ones."""
        return self.rounds // self.keep_states if self.keep_states else 0


@dataclass(frozen=True)
class Seconds:
    """The parts of a run's time; `round` is an average later round, with its evaluation if all are evaluated.

    With `slows_down` the rounds are a lower bound: they take longer the more clients have taken part.

    `process` is the part of `start` and `closing` that the points of a sweep have in common: it starts and ends the
    program, and reads the configs of all points.
    """

    start: float
    first: float
    round: float
    rounds: float  # all of them
    closing: float
    process: float = 0.0
    slows_down: bool = False

    @property
    def total(self) -> float:
        return self.start + self.rounds + self.closing

    def of_points(self, points: int) -> float:
        """How long so many points take, one after another in one process."""
        return points * (self.total - self.process) + self.process


def seconds(result: ProbeResult, outline: RunOutline, start_s: float, process_s: float = 0.0) -> Seconds:
    """How long the run will take from the command to its end; `process_s` of it are the program's, not the run's."""
    tried = result.tried_rounds
    timed = [tried_round for tried_round in tried if tried_round.seconds is not None]
    evaluation = median(tried_round.evaluation_s for tried_round in tried)
    following_work = (
        sum(outline.work[1:])
        if outline.work
        else mean(tried_round.work for tried_round in tried) * (outline.rounds - 1)
    )
    rate = median(
        tried_round.training_s / tried_round.work if tried_round.work else 0.0 for tried_round in timed or tried
    )
    overhead = (
        median((tried_round.seconds or 0.0) - tried_round.training_s for tried_round in timed)
        if timed
        else max(0.0, result.first_s - tried[0].training_s)  # of the first round, if no other is known
    )
    following = max(0.0, (outline.rounds - 1) * overhead + rate * following_work)
    unevaluated = outline.rounds - outline.evaluations
    all_rounds_s = result.first_s + following + evaluation - min(unevaluated * evaluation, following)
    saving = result.save_s * count_saves(all_rounds_s, outline)
    usual = following / (outline.rounds - 1) if outline.rounds > 1 else result.first_s
    start_s, slows_down = start_s + result.worker_start_s, client_growth_mb(result, outline) > 0
    return Seconds(start_s, result.first_s, usual, all_rounds_s + saving, result.closing_s, process_s, slows_down)


def count_saves(rounds_s: float, outline: RunOutline) -> int:
    """How often the state is saved before the end."""
    by_clock = outline.rounds if outline.checkpoint_s == 0 else int(rounds_s / outline.checkpoint_s)
    return min(outline.rounds, max(by_clock, outline.kept_states)) + outline.kept_states


def client_growth_mb(result: ProbeResult, outline: RunOutline) -> float:
    """How much the state will still grow by clients that take part for the first time, by the same for each."""
    if not result.state_sizes:
        return 0.0
    (few, before), (many, after) = result.state_sizes[0], result.state_sizes[-1]
    mb_per_client = max(0.0, (after - before) / (many - few)) if many > few else 0.0
    return mb_per_client * max(0, outline.clients - many)


def growth_mb(result: ProbeResult, outline: RunOutline) -> float:
    """How much the state will still grow: by what is kept of clients, and by earlier models that clients train on."""
    return client_growth_mb(result, outline) + max(0.0, outline.versions_mb - result.versions_mb)


def memory_mb(result: ProbeResult, outline: RunOutline) -> tuple[float, float | None]:
    """The most memory that the processes, and the GPU, will use.

    What is kept of clients counts twice: a new table is written while the old one is there.
    """
    growth = growth_mb(result, outline) + client_growth_mb(result, outline)
    if result.gpu_mb is None:
        return result.memory_mb + growth, None
    return result.memory_mb, result.gpu_mb + growth


def disk_mb(result: ProbeResult, outline: RunOutline, rounds_s: float) -> float:
    """The size of the run folder: states, tables and other files."""
    state = result.state_mb + growth_mb(result, outline)
    states = 1 + min(1, count_saves(rounds_s, outline)) + outline.kept_states
    return states * state + outline.rounds * result.table_mb + result.other_mb


def count_evaluations(exp: Experiment, result: ProbeResult, dry_run: DryRun | None, rounds: int) -> int:
    """How many rounds are evaluated; the last one always is."""
    evaluation = exp.evaluation
    if evaluation.every_s is None:
        return math.ceil(rounds / evaluation.every)
    if dry_run is None:
        tried = [tried_round.row["sim_s"] for tried_round in result.tried_rounds]
        return min(rounds, 1 + int(extrapolate(tried, rounds, growing=True) // evaluation.every_s)) if tried else rounds
    clock = [0.0, *(dry_round.sim_s for dry_round in dry_run.dry_rounds[: rounds - 1])]
    return 1 + sum(evaluation.is_due(number, *span) for number, span in enumerate(pairwise(clock), start=1))


def extrapolate(tried: Sequence[float], rounds: int, *, growing: bool = False) -> float:
    """The sum over this many rounds: the first once, as it may be unlike the others, then the mean of the others tried.

    With `growing`, the values tried are sums so far.
    """
    per_round = np.diff(tried, prepend=0.0) if growing else np.array(tried)
    return float(per_round[0] + (rounds - 1) * (per_round[1:].mean() if len(per_round) > 1 else per_round[0]))
