"""All measurements of an evaluated round besides the test data."""

import time
from collections.abc import Callable
from typing import Any

from fedexp.core.values import State, Uploads
from fedexp.simulation import context
from fedexp.simulation.experiment import Experiment
from fedexp.simulation.measures import clusters, own_models, participants, participation
from fedexp.simulation.world import World

Told = tuple[dict[str, Any], float]  # columns, and the seconds of computing that they took


def blank(exp: Experiment, world: World) -> dict[str, Any]:
    """The cells of a round that is not evaluated."""
    audited = {f"audit.{name}": cell for name, cell in exp.audit.blank().items()}
    clients = participants.blank(exp) | own_models.blank(exp) | participation.blank(exp) | clusters.blank(exp)
    return dict.fromkeys(world.probes) | clients | audited


def begin(exp: Experiment, world: World, before: State, state: State, sent: Uploads) -> list[Callable[[], Told]]:
    """Starts all measurements of the round that led from `before` to `state`; each result gives columns of its row."""
    return [
        probes(world, state),
        participants.score_later(exp, world, before, state, sent),
        own_models.score_later(exp, world, state),
        participation.score_later(exp, world, state),
        clusters.score_later(exp, world, state),
        audit(exp, world, state),
    ]


def probes(world: World, state: State) -> Callable[[], Told]:
    """The global model's accuracy on the attack's probe examples."""
    accuracy = world.scorer.gauge.accuracy
    pending = {name: world.score_later(state.models[0], probe, accuracy) for name, probe in world.probes.items()}

    def result() -> Told:
        scores = {name: each.result() for name, each in pending.items()}
        seconds = sum(each.seconds for each in scores.values())
        return {name: each.metrics["accuracy"] for name, each in scores.items()}, seconds

    return result


def audit(exp: Experiment, world: World, state: State) -> Callable[[], Told]:
    """The audit's report so far."""
    begun = time.perf_counter()
    found = exp.audit.report(state.memory.get("audit", {}), context.at(world, state.round + 1, state.models))
    told = {f"audit.{name}": value for name, value in found.items()}, time.perf_counter() - begun
    return lambda: told
