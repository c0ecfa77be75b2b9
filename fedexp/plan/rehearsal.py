"""Every round of a run without its training: who is selected, what is sent, how long the fleet takes.

If the seed alone decides who takes part, this is exact: the draws come from the same streams as in the run. Only
uploads that are not finite cannot be foreseen.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from fedexp.core.values import Memory, Plan, Uploads
from fedexp.parts.context import Context
from fedexp.parts.privacy.ledger import Ledger
from fedexp.simulation import context
from fedexp.simulation.experiment import Experiment
from fedexp.simulation.round import without_columns
from fedexp.simulation.traffic import clients, megabytes
from fedexp.simulation.world import World

PATIENCE_S = 4.0  # after which no more rounds are counted


@dataclass(frozen=True)
class Act:
    """One round: who was asked and who delivered, the work, the megabytes and the simulated time at its end."""

    asked: np.ndarray
    delivered: np.ndarray
    work: float
    mb_down: float
    mb_up: float
    sim_s: float


@dataclass(frozen=True)
class Rehearsal:
    """Rounds from the first on, and why the stop rule ends the run after them.

    With `whole` these are all rounds of the run; else there were too many to count, and the run does not end before.
    """

    acts: tuple[Act, ...]
    reason: str | None
    whole: bool = True

    @property
    def rounds(self) -> int:
        return len(self.acts)

    @property
    def updates(self) -> int:
        """How many times clients are asked, in all."""
        return sum(clients(act.asked) for act in self.acts)

    def sim_s(self, rounds: int) -> float:
        """The simulated clock after so many rounds."""
        return self.acts[rounds - 1].sim_s

    def ledgers(self, rounds: int) -> tuple[Ledger, Ledger]:
        """How often each client has been asked, and has delivered, after so many rounds."""
        acts = self.acts[:rounds]
        return _counted([act.asked for act in acts]), _counted([act.delivered for act in acts])


@dataclass(frozen=True)
class Guess:
    """The simulated clock as a function of the rounds, and rounds in which all `clients` take part: an upper bound."""

    sim_s: Callable[[int], float]
    clients: int

    def ledgers(self, rounds: int) -> tuple[Ledger, Ledger]:
        """How often each client has been asked, and has delivered, after so many rounds."""
        everyone = np.arange(self.clients)
        both = Ledger(everyone, np.full(self.clients, rounds))
        return both, both


def foreseeable(exp: Experiment) -> bool:
    """Whether the seed alone decides who takes part."""
    return exp.selector.foreseeable and not exp.clustering.divides


def rehearse(exp: Experiment, world: World) -> Rehearsal | None:
    """Counts the rounds up to the last, or until `PATIENCE_S` is over.

    None if the selection depends on training.
    """
    if not foreseeable(exp):
        return None
    begun, acts = time.perf_counter(), []
    for act in _acts(exp, world):
        acts.append(act)
        late = time.perf_counter() - begun > PATIENCE_S
        if late or len(acts) == exp.rounds or len(acts).bit_count() == 1:  # seldom, as this may take long itself
            played = Rehearsal(tuple(acts), None, len(acts) == exp.rounds)
            if (end := ending(exp, world, played, len(acts))) is not None:
                last, reason = end
                return Rehearsal(played.acts[:last], reason)
            if late:
                return played
    return Rehearsal(tuple(acts), None)


def reason_to_stop(exp: Experiment, world: World, course: Rehearsal | Guess, rounds: int) -> str | None:
    """What the stop rule will say after this many rounds; None for a rule that looks at validation data."""
    if not (exp.stop.needs_clock or exp.stop.needs_privacy):
        return None
    ctx = context.at(world, rounds)
    charged = exp.privacy.foresee(*course.ledgers(rounds), rounds, ctx) if exp.stop.needs_privacy else {}
    row = {"sim_s": course.sim_s(rounds)} | {f"privacy.{name}": cell for name, cell in charged.items()}
    return exp.stop.judge(row, {})[0]


def ending(exp: Experiment, world: World, course: Rehearsal | Guess, rounds: int) -> tuple[int, str] | None:
    """The first of these rounds after which the run ends, and why; None if it goes on after all of them.

    Clocks and ledgers only grow, so bisection finds it.
    """
    low, high, reason = 1, rounds, reason_to_stop(exp, world, course, rounds)
    while reason is not None and low < high:
        middle = (low + high) // 2
        if (sooner := reason_to_stop(exp, world, course, middle)) is None:
            low = middle + 1
        else:
            high, reason = middle, sooner
    return None if reason is None else (high, reason)


def work(ctx: Context, sizes: np.ndarray, together: bool) -> float:
    """Examples that pass through the model in a round whose participants have `sizes [C]` examples.

    If a GPU trains the rows `together`, the one with the most counts alone: the others end no later.
    """
    each = ctx.fleet.epochs(sizes) * sizes
    return float(each.max(initial=0.0) if together else each.sum())


def trains_together(world: World) -> bool:
    """Whether all rows of a round take as long as the one with the most work."""
    return world.choice.name == "stacked" and world.first.flat.device.type == "cuda"


def _acts(exp: Experiment, world: World) -> Iterator[Act]:
    memory: dict[str, Memory] = {"selector": {}, "fleet": {}}
    sim_s, together = 0.0, trains_together(world)
    for number in range(1, exp.rounds + 1):
        ctx = context.at(world, number)
        plan, memory["selector"] = exp.selector.choose(without_columns(memory["selector"]), ctx)
        uploads, seconds, memory["fleet"] = exp.fleet.deliver(_empty(plan), plan, without_columns(memory["fleet"]), ctx)
        sim_s += seconds
        sent = megabytes(exp, ctx, plan, uploads.owner)
        done = work(ctx, plan.sizes, together)
        yield Act(plan.owner, uploads.owner, done, sent["mb_down"], sent["mb_up"], sim_s)


def _empty(plan: Plan) -> Uploads:
    """Uploads whose rows hold no values."""
    count = len(plan.owner)
    nothing = np.zeros(count)
    return Uploads(plan.owner, nothing.astype(int), plan.sizes, nothing, torch.zeros((count, 1)), nothing, nothing)


def _counted(owners: list[np.ndarray]) -> Ledger:
    owner = np.concatenate([*owners, np.zeros(0, np.int64)])
    return Ledger.load({}).add(owner, np.ones(len(owner), dtype=np.int64))
