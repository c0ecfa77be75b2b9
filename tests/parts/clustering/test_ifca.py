"""Clusters that every participant picks anew, by its losses."""

from typing import Any

import numpy as np
import pytest
import torch

from fedexp.simulation import context

IFCA = "clustering=ifca"


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_three_groups_are_found_from_a_good_start(live: Any, seed: int):
    _, _, lines = live(IFCA, "evaluation.personal_fraction=0.2", f"seed={seed}", "rounds=4")
    assert lines[-1]["clustering.agreement"] == 1.0
    assert lines[-1]["clusters.inside"] >= lines[-1]["clusters.global_inside"] + 0.2


def test_a_bad_start_joins_two_groups(live: Any):
    """As in the paper: which clusters are found depends on the first models."""
    _, _, lines = live(IFCA, "seed=2", "rounds=4")
    assert lines[-1]["clustering.clusters"] == 2
    assert lines[-1]["clustering.agreement"] < 0.7


@pytest.mark.law("clustering=ifca", "every client takes the model of its lowest loss")
def test_everyone_takes_the_model_of_the_lowest_loss(live: Any):
    world, states, _ = live(IFCA, "rounds=2")
    before, after = states
    ctx = context.make_context(world, 2, before.models)
    everyone = np.arange(12)
    losses = [ctx.clients_data.losses_of(weights, ctx.plan(everyone)) for weights in before.models[1:]]
    expected = 1 + np.argmin(losses, axis=0)
    assert world.exp.clustering.model_of(everyone, after.memory["clustering"]).tolist() == expected.tolist()


def test_it_begins_around_the_first_model(live: Any):
    world, _, _ = live(IFCA, "rounds=1")
    ctx = context.make_context(world, 1)
    plan, _ = world.exp.selector.choose({}, ctx)
    models, same, _, _ = world.exp.clustering.assign((world.first,), plan, {}, ctx)
    assert same is plan
    assert models[0] is world.first
    scale = 0.5 * float(world.first.flat.square().mean().sqrt())
    for weights in models[1:]:
        assert float((weights.flat - world.first.flat).std()) == pytest.approx(scale, rel=0.1)
    assert not torch.equal(models[1].flat, models[2].flat)


@pytest.mark.law("clustering=ifca", "what stays with the clients keeps its first bytes in every cluster")
def test_what_stays_with_the_clients_is_the_first_model_in_every_cluster(live: Any):
    world, states, _ = live(IFCA, "local=personal_layer", "rounds=2")
    kept = torch.from_numpy(world.exp.local.private_columns(world.layout))
    for weights in states[-1].models:
        assert torch.equal(weights.flat[kept], world.first.flat[kept])


def test_who_changes_leaves_and_joins(live: Any):
    world, states, _ = live(IFCA, "rounds=1")
    (state,) = states
    plan, ctx = context.make_context(world, 2).plan(np.array([3, 7])), context.make_context(world, 2, state.models)
    _, _, cluster, _ = world.exp.clustering.assign(state.models, plan, state.memory["clustering"], ctx)
    stays, goes = cluster.tolist()
    other = goes % 3 + 1
    memory = {"members": {"3": stays, "5": 2, "7": other}}
    _, _, _, after = world.exp.clustering.assign(state.models, plan, memory, ctx)
    assert after["events"] == (
        (2, "model", 3, stays, None),
        (2, "leave", 7, other, None),
        (2, "join", 7, goes, None),
        (2, "model", 7, goes, None),
    )
    assert after["members"] == {"3": stays, "5": 2, "7": goes}
    assert memory["members"]["7"] == other


def test_all_models_go_to_every_participant_and_one_comes_back(live: Any):
    world, _, lines = live(IFCA, "clustering.count=4", "rounds=2", "scenario.participants=5")
    size = world.layout.size * 4 / 1e6
    for line in lines:
        assert line["clustering.messages"] == 5 * 5
        assert line["clustering.mb"] == pytest.approx(15 * size)
        assert line["mb_down"] == pytest.approx(20 * size)
        assert line["mb_up"] == pytest.approx(5 * size + 4 * 20 / 1e6)  # and the losses


@pytest.mark.law("clustering=ifca", "a client that was never asked uses the global model")
def test_who_was_never_asked_uses_the_global_model(live: Any):
    world, states, _ = live(IFCA, "scenario.participants=2", "rounds=1")
    members = states[-1].memory["clustering"]["members"]
    model = world.exp.clustering.model_of(np.arange(12), states[-1].memory["clustering"])
    assert len(members) == 2
    assert sorted(np.flatnonzero(model).tolist()) == sorted(int(client) for client in members)
