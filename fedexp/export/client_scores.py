"""What the model of one client comes to: on what this client held out, and on the test data."""

import numpy as np

from fedexp.core.values import Weights
from fedexp.parts.federation.partition import Partition
from fedexp.simulation.world import World

ScoredData = tuple[str, dict[str, float]]  # what the examples are, and the loss and metrics on them


def client_scores(world: World, weights: Weights, client: int) -> list[ScoredData]:
    """The scores of a client's model on each data that there is to judge it by, its own first."""
    shard, scorer = _shard(world, world.held_out, client), world.scorer
    scored = []
    if len(shard):
        data = world.client_eval_data
        scores = scorer.score(weights, data, scorer.metric_set, data.to_device(shard))
        kind = "test examples of its own" if world.exp.evaluation.own_test else "examples that it held out"
        scored.append((f"{len(shard):,} {kind}, its own model", {"loss": scores.loss, **scores.metrics}))
    if world.exp.evaluation.test:
        scores = scorer.score(weights, world.test, scorer.metric_set)
        scored.append((f"{len(world.test):,} test examples, its own model", {"loss": scores.loss, **scores.metrics}))
    return scored


def example_counts(world: World, client: int) -> str:
    """How many examples a client trains on and holds out, in words."""
    held_out, validation = (len(_shard(world, part, client)) for part in (world.held_out, world.client_validation))
    kind = "test examples are its own" if world.exp.evaluation.own_test else "it held out"
    behind = f", {held_out:,} more {kind}" if held_out else ""
    behind += f", {validation:,} more are for validation" if validation else ""
    return f"{len(world.partition.shard(client)):,} training examples{behind}"


def _shard(world: World, partition: Partition, client: int) -> np.ndarray:
    """What a client holds of a partition for other purposes than training, `[n]`; none where one pools all data."""
    if world.partition.clients != world.sites.clients:
        return np.zeros(0, np.int64)
    return partition.shard(client)
