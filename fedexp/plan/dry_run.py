"""Every round of a run without its training: who is selected, what is sent, how long the fleet takes.

If the seed alone decides who takes part, this is exact: the draws come from the same streams as in the run. Only
uploads that are not finite cannot be foreseen.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from fedexp.core.values import State, Uploads
from fedexp.parts.context import Context
from fedexp.parts.privacy.ledger import Ledger
from fedexp.simulation import context
from fedexp.simulation.collect import deliver
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.start import start
from fedexp.simulation.traffic import megabytes
from fedexp.simulation.world import World

PATIENCE_S = 4.0  # after which no more rounds are counted


@dataclass(frozen=True)
class DryRound:
    """One round: who was asked, the work, the megabytes and the simulated time at its end.

    `versions` counts the earlier models that clients then train on.
    """

    selected: np.ndarray
    work: float
    mb_down: float
    mb_up: float
    sim_s: float
    versions: int


@dataclass(frozen=True)
class DryRun:
    """Rounds from the first on, and why the stop rule ends the run after them.

    With `complete` these are all rounds of the run; else there were too many to count, and the run does not end before.
    """

    dry_rounds: tuple[DryRound, ...]
    reason: str | None
    complete: bool = True

    @property
    def rounds(self) -> int:
        return len(self.dry_rounds)

    def sim_s(self, rounds: int) -> float:
        """The simulated clock after so many rounds."""
        return self.dry_rounds[rounds - 1].sim_s

    def participations(self, rounds: int) -> Ledger:
        """How often each client has been asked after so many rounds."""
        owner = np.concatenate([*(dry_round.selected for dry_round in self.dry_rounds[:rounds]), np.zeros(0, np.int64)])
        return Ledger.load({}).add(owner, np.ones(len(owner), dtype=np.int64))


@dataclass(frozen=True)
class RunEstimate:
    """The simulated clock as a function of the rounds, and rounds in which all `clients` take part: an upper bound."""

    sim_s: Callable[[int], float]
    clients: int

    def participations(self, rounds: int) -> Ledger:
        """How often each client has been asked after so many rounds."""
        return Ledger(np.arange(self.clients), np.full(self.clients, rounds))


def run_dry(exp: Experiment, world: World) -> DryRun | None:
    """Counts the rounds up to the last, or until `PATIENCE_S` is over.

    None if who is selected, or what is sent, depends on training.
    """
    if not exp.selector.foreseeable or exp.clustering.has_clusters or exp.local.judging_fraction:
        return None
    started, dry_rounds = time.perf_counter(), []
    for dry_round in _dry_rounds(exp, world):
        dry_rounds.append(dry_round)
        late = time.perf_counter() - started > PATIENCE_S
        if (
            late or len(dry_rounds) == exp.rounds or len(dry_rounds).bit_count() == 1
        ):  # seldom, as this may take long itself
            dry_run = DryRun(tuple(dry_rounds), None, len(dry_rounds) == exp.rounds)
            if (end := find_end(exp, world, dry_run, len(dry_rounds))) is not None:
                last, reason = end
                return DryRun(dry_run.dry_rounds[:last], reason)
            if late:
                return dry_run
    return DryRun(tuple(dry_rounds), None)


def reason_to_stop(exp: Experiment, world: World, expected: DryRun | RunEstimate, rounds: int) -> str | None:
    """What the stop rule will say after this many rounds; None for a rule that looks at validation data."""
    if not (exp.stop.needs_clock or exp.stop.needs_privacy):
        return None
    ctx = context.make_context(world, rounds)
    ledger_columns = (
        exp.privacy.forecast(expected.participations(rounds), rounds, ctx) if exp.stop.needs_privacy else {}
    )
    row = {"sim_s": expected.sim_s(rounds)} | {f"privacy.{name}": cell for name, cell in ledger_columns.items()}
    return exp.stop.judge(row, {})[0]


def find_end(exp: Experiment, world: World, expected: DryRun | RunEstimate, rounds: int) -> tuple[int, str] | None:
    """The first of these rounds after which the run ends, and why; None if it goes on after all of them.

    Clocks and ledgers only grow, so bisection finds it.
    """
    low, high, reason = 1, rounds, reason_to_stop(exp, world, expected, rounds)
    while reason is not None and low < high:
        middle = (low + high) // 2
        if (sooner := reason_to_stop(exp, world, expected, middle)) is None:
            low = middle + 1
        else:
            high, reason = middle, sooner
    return None if reason is None else (high, reason)


def round_work(ctx: Context, sizes: np.ndarray, lockstep: bool) -> float:
    """Examples that pass through the model in a round whose participants have `sizes [C]` examples.

    If a GPU trains the rows `lockstep`, the one with the most counts alone: the others end no later.
    """
    examples = ctx.fleet.epochs(sizes) * sizes
    return float(examples.max(initial=0.0) if lockstep else examples.sum())


def trains_in_lockstep(world: World) -> bool:
    """Whether all rows of a round take as long as the one with the most work."""
    return world.choice.name == "stacked" and world.first.flat.device.type == "cuda"


def _dry_rounds(exp: Experiment, world: World) -> Iterator[DryRound]:
    state, lockstep = world.initial_state(), trains_in_lockstep(world)
    for number in range(1, exp.rounds + 1):
        ctx = context.begin_round(exp, world, state)
        jobs, models, mem = start(exp, world, state, ctx)
        zeros = np.zeros(len(jobs.owner))
        messages = Uploads(jobs.owner, jobs.model, jobs.sizes, zeros, torch.zeros((len(zeros), 1)), zeros, zeros)
        uploads, seconds, mem["fleet"] = deliver(exp, messages, jobs, mem.get("fleet", {}), ctx)
        state = State(number, models, mem, ctx.fleet.now_s + seconds)
        traffic = megabytes(exp, ctx, jobs, uploads.owner)
        examples = round_work(ctx, jobs.sizes, lockstep)
        versions = len(exp.pacing.versions(mem["pacing"]))
        yield DryRound(jobs.owner, examples, traffic["mb_down"], traffic["mb_up"], state.sim_s, versions)
