"""From tried rounds to a whole run: training time grows with the work, the rest is the same each round."""

from dataclasses import dataclass
from statistics import mean, median

from fedexp.plan.probe import Findings


@dataclass(frozen=True)
class Course:
    """What is known of all rounds: number, work of each (None if it depends on training), and how states are saved."""

    rounds: int
    work: tuple[float, ...] | None
    clients: int  # upper bound of those that take part
    every: int  # rounds between two evaluations
    checkpoint_s: float
    keep_states: int

    @property
    def evaluations(self) -> int:
        """How many rounds are evaluated; the last one always is."""
        return self.rounds // self.every + (self.rounds % self.every > 0)


@dataclass(frozen=True)
class Seconds:
    """The parts of a run's time; `round` is an average later round, with its evaluation if all are evaluated."""

    start: float
    first: float
    round: float
    rounds: float  # all of them
    closing: float

    @property
    def total(self) -> float:
        return self.start + self.rounds + self.closing


def seconds(found: Findings, course: Course, start_s: float) -> Seconds:
    """How long the run will take from the command to its end."""
    tried = found.tried
    alone = [each for each in tried if each.seconds is not None]
    evaluation = median(each.evaluation_s for each in tried)
    following_work = sum(course.work[1:]) if course.work else mean(each.work for each in tried) * (course.rounds - 1)
    rate = median(each.training_s / each.work if each.work else 0.0 for each in alone or tried)
    rest = median((each.seconds or 0.0) - each.training_s for each in alone) if alone else _rest_of_first(found)
    following = max(0.0, (course.rounds - 1) * rest + rate * following_work)
    unevaluated = course.rounds - course.evaluations
    whole = found.first_s + following + evaluation - min(unevaluated * evaluation, following)
    saving = found.save_s * saves(whole, course)
    usual = following / (course.rounds - 1) if course.rounds > 1 else found.first_s
    return Seconds(start_s + found.staff_s, found.first_s, usual, whole + saving, found.closing_s)


def _rest_of_first(found: Findings) -> float:
    """What the first round took besides its training, if no other round is known."""
    return max(0.0, found.first_s - found.tried[0].training_s)


def saves(rounds_s: float, course: Course) -> int:
    """How often the state is saved before the end."""
    by_clock = course.rounds if course.checkpoint_s == 0 else int(rounds_s / course.checkpoint_s)
    kept = course.rounds // course.keep_states if course.keep_states else 0
    return min(course.rounds, max(by_clock, kept)) + kept


def growth_mb(found: Findings, course: Course) -> float:
    """How much the state will still grow: by the same amount for each client that takes part for the first time."""
    (few, before), (many, after) = found.held[0], found.held[-1]
    each = max(0.0, (after - before) / (many - few)) if many > few else 0.0
    return each * max(0, course.clients - many)


def memory_mb(found: Findings, course: Course) -> tuple[float, float | None]:
    """The most memory that the processes, and the GPU, will use."""
    grown = growth_mb(found, course)
    if found.gpu_mb is None:
        return found.memory_mb + grown, None
    return found.memory_mb, found.gpu_mb + grown


def disk_mb(found: Findings, course: Course, rounds_s: float) -> float:
    """The size of the run folder: states, tables, and the rest."""
    state = found.state_mb + growth_mb(found, course)
    kept = course.rounds // course.keep_states if course.keep_states else 0
    states = 1 + min(1, saves(rounds_s, course)) + kept
    return states * state + course.rounds * found.table_mb + found.other_mb
