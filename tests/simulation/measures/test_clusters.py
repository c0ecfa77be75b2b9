"""What evaluated rounds tell of the clusters' models, worked out a second time."""

from typing import Any

import numpy as np
import pytest
import torch
from groups import SIMILAR
from torch.nn import functional as F

from fedexp.core.values import Weights
from fedexp.simulation.measures import clusters as cluster_models

INSIDE = "evaluation.personal_fraction=0.2"


def logp(world: Any, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
    return F.log_softmax(world.scorer.logits(weights, inputs), dim=1).clone()


def test_together_and_at_home(live: Any):
    world, states, lines = live(*SIMILAR, INSIDE, "rounds=1", "engine.evaluation_chunk=7")
    state, line = states[-1], lines[-1]
    inputs, labels = world.test.inputs(slice(0, 300)), world.test.y
    clusters = torch.stack([logp(world, weights, inputs) for weights in state.models[1:]])
    shares = {"clusters.max": clusters.max(dim=0).values, "clusters.mean": clusters.exp().mean(dim=0)}
    for name, share in shares.items():
        assert line[name] == pytest.approx(float((share.argmax(dim=1) == labels).double().mean()))
    gap = (clusters - logp(world, world.first, inputs)).norm(dim=2).argmin(dim=0)
    asked = clusters.argmax(dim=2)[gap, torch.arange(300)]
    assert line["clusters.nearest"] == pytest.approx(float((asked == labels).double().mean()))
    model = world.exp.clustering.model_of(np.arange(12), state.memory["clustering"])
    for name, number in (("clusters.inside", model), ("clusters.global_inside", model * 0)):
        each = []
        for client in range(12):
            index = torch.from_numpy(world.held_out.shard(client))
            answer = logp(world, state.models[number[client]], world.train.inputs(index)).argmax(dim=1)
            each.append(float((answer == world.train.y[index]).double().mean()))
        assert line[name] == pytest.approx(np.mean(each))


def test_without_clusters_the_cells_are_empty(live: Any):
    """Before anybody has joined; and nobody is at home in a cluster yet."""
    _, _, lines = live(*SIMILAR, INSIDE, "clustering.arrivals=[1:12]", "rounds=2", "evaluation.every=1")
    names = [name for name in lines[0] if name.startswith("clusters.")]
    assert tuple(names) == cluster_models.ENSEMBLE_COLUMNS + cluster_models.MEMBER_COLUMNS
    assert all(lines[0][name] is None and lines[1][name] is not None for name in names)


def test_columns_where_asked_for_and_in_evaluated_rounds(live: Any):
    _, _, lines = live(*SIMILAR, "rounds=2", "evaluation.every=2")
    assert [lines[0][name] for name in cluster_models.ENSEMBLE_COLUMNS] == [None] * 4
    assert all(0 <= lines[1][name] <= 1 for name in cluster_models.ENSEMBLE_COLUMNS)
    assert not set(cluster_models.MEMBER_COLUMNS) & set(lines[0])
    _, _, plain = live("rounds=1")
    assert not [name for name in plain[0] if name.startswith("cluster")]
