"""The global model at clients that never train and at those that do (`evaluation.unseen_fraction`).

Source: Yuan, Morningstar, Ning & Singh, "What Do We Mean by Generalization in Federated Learning?" (ICLR 2022, arXiv
2110.14216): the participation gap is the accuracy (here the main metric) on what participating clients held out less
that on the examples of clients that never participate; the other way round where less is better, so that a gap above 0
always says that the model is better at those that train. Each client counts alike. At most
`evaluation.personal_clients` of either are measured, drawn once; malicious ones are not. A client that never trains is
measured on all its examples, with `evaluation.own_test` on those of the test data.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fedexp.core.values import State
from fedexp.maths.curve_metrics import higher_is_better
from fedexp.simulation.measures.own_models import measured_clients, sample_clients, score_on_shard
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World


def columns(exp: Experiment) -> tuple[str, ...]:
    """The names of the columns; none unless they are asked for."""
    main = exp.metrics[0]
    names = (f"participating_{main}", f"unseen_{main}", "participation_gap")
    return names if exp.evaluation.unseen_fraction else ()


def score_later(exp: Experiment, world: World, state: State) -> Callable[[], tuple[dict[str, Any], float]]:
    """Starts scoring the global model at both kinds of clients; the result gives columns and seconds."""
    if not columns(exp):
        return lambda: ({}, 0.0)
    training, unseen = measured_clients(exp, world), measured_unseen(exp, world)
    sign = 1 if higher_is_better(exp.metrics[0]) else -1
    shards = [world.held_out.shard(client) for client in training] + [world.unseen.shard(client) for client in unseen]
    work = world.defer_rows([partial(score_on_shard, world, state.models[0], shard) for shard in shards], 2)

    def result() -> tuple[dict[str, Any], float]:
        world.pool.finish(work)
        values, seconds = work.out.cpu().numpy().T
        groups = [group[~np.isnan(group)] for group in (values[: len(training)], values[len(training) :])]
        means = [float(group.mean()) if len(group) else None for group in groups]
        gap = None if None in means else sign * (means[0] - means[1])  # pyright: ignore[reportOperatorIssue]
        return dict(zip(columns(exp), (*means, gap), strict=True)), float(seconds.sum())

    return result


def measured_unseen(exp: Experiment, world: World) -> np.ndarray:
    """Those `[n]` of the clients that never train which are measured, ascending, numbered among themselves."""
    return sample_clients(exp, np.flatnonzero(world.unseen.sizes), "unseen_clients")
