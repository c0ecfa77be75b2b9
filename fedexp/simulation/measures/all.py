"""All measurements of an evaluated round besides the test data."""

import time
from collections.abc import Callable
from typing import Any

from fedexp.core.values import State, Uploads
from fedexp.simulation import context
from fedexp.simulation.measures import clusters, own_models, participants, participation
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World

Measurement = tuple[dict[str, Any], float]  # columns, and the seconds of computing that they took


def blank(exp: Experiment, world: World) -> dict[str, Any]:
    """The cells of a round that is not evaluated."""
    names = [name for measure in (participants, own_models, participation, clusters) for name in measure.columns(exp)]
    audited = {f"audit.{name}": cell for name, cell in exp.audit.empty_columns().items()}
    return dict.fromkeys((*world.probes, *names)) | audited


def begin(exp: Experiment, world: World, before: State, state: State, sent: Uploads) -> list[Callable[[], Measurement]]:
    """Starts all measurements of the round that led from `before` to `state`; each result gives columns of its row."""
    return [
        probes(world, state),
        participants.score_later(exp, world, before, state, sent),
        own_models.score_later(exp, world, state),
        participation.score_later(exp, world, state),
        clusters.score_later(exp, world, state),
        audit(exp, world, state),
    ]


def probes(world: World, state: State) -> Callable[[], Measurement]:
    """The global model's accuracy on the attack's probe examples."""
    accuracy = world.scorer.metric_set.accuracy
    pending = {name: world.score_later(state.models[0], probe, accuracy) for name, probe in world.probes.items()}

    def result() -> Measurement:
        scores = {name: score.result() for name, score in pending.items()}
        seconds = sum(score.seconds for score in scores.values())
        return {name: score.metrics["accuracy"] for name, score in scores.items()}, seconds

    return result


def audit(exp: Experiment, world: World, state: State) -> Callable[[], Measurement]:
    """The audit's report so far."""
    start = time.perf_counter()
    report = exp.audit.report(state.memory.get("audit", {}), context.make_context(world, state.round + 1, state.models))
    result = {f"audit.{name}": value for name, value in report.items()}, time.perf_counter() - start
    return lambda: result
