"""Ditto: two steps by hand, FedAvg's bytes on the way of w, training alone without the pull, resuming."""

from pathlib import Path

import numpy as np
import pytest
import torch
from worlds import Tiny, rounds_with_rows, same, world_of

from fedexp.parts.local.ditto import DittoCompanion
from fedexp.run.state import checkpoint
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.world import World

WORDS = ("model.hidden=[6]", "local.epochs=2", "rounds=3")


def own_models(world: World, state) -> torch.Tensor:
    return personal_models(world.exp, world, state, np.arange(world.partition.clients))


def test_a_step_by_hand():
    """At v = 3 with received w = 1, gradient 2, lam 0.5 and lr 0.1: 3 - 0.1 (2 + 0.5 * 2) = 2.7."""
    v, rule = torch.tensor([[3.0]]), DittoCompanion(lr=0.1, lam=0.5)
    direction = rule.direction(torch.tensor([[2.0]]), v, torch.tensor([[1.0]]))
    rule.update(v, direction, torch.zeros(0, 1, 1), torch.tensor(1.0), None)
    assert v.item() == pytest.approx(2.7)


@pytest.mark.law("local=ditto", "the global models are FedAvg's for every lambda, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("lam", ["0", "0.3"])
def test_the_global_path_is_fedavgs_to_the_byte(tiny: Tiny, engine: str, lam: str):
    ditto = world_of(tiny("local=ditto", f"local.lam={lam}", *WORDS, f"engine={engine}"))
    fedavg = world_of(tiny("local=sgd", *WORDS, f"engine={engine}"))
    for (ours, row, _), (theirs, other, _) in zip(rounds_with_rows(ditto), rounds_with_rows(fedavg), strict=True):
        assert torch.equal(ours.models[0].flat, theirs.models[0].flat)
        assert row["train_loss"] == other["train_loss"]


@pytest.mark.law("local=ditto", "lambda = 0 is training alone, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_without_the_pull_it_is_training_alone_to_the_byte(tiny: Tiny, engine: str):
    words = (*WORDS, "evaluation.personal_fraction=0.3", f"engine={engine}")
    ditto = world_of(tiny("local=ditto", "local.lam=0", *words))
    alone = world_of(tiny("local=sgd", "scenario.training=local", *words))
    for (ours, _, _), (theirs, _, _) in zip(rounds_with_rows(ditto), rounds_with_rows(alone), strict=True):
        asked = ours.memory["companion"]["owner"].numpy()
        assert torch.equal(own_models(ditto, ours)[asked], own_models(alone, theirs)[asked])


@pytest.mark.law(
    "local=ditto", "lr times lambda = 1 holds a client's model at the received one, up to a step of the gradient"
)
def test_a_strong_pull_holds_the_model_at_the_received_one(tiny: Tiny):
    """lr lam = 1 puts v on w in the first step, up to a step of the gradient."""
    words = ("local=ditto", "local.batch_size=full", "local.epochs=1", "model.hidden=[6]", "rounds=2", "selector=all")
    world = world_of(tiny(*words, "local.lr=1e-4", "local.lam=1e4"))
    states = [state for state, _, _ in rounds_with_rows(world)]
    received = states[0].models[0].flat
    torch.testing.assert_close(own_models(world, states[1]), received.expand(6, -1), atol=1e-3, rtol=0)


@pytest.mark.law("local=ditto", "a client that was never asked uses the global model, to the byte")
def test_who_was_never_asked_uses_the_global_model(tiny: Tiny):
    world = world_of(tiny("local=ditto", *WORDS, "rounds=1", "scenario.participants=2"))
    [(state, _, sent)] = rounds_with_rows(world)
    models = own_models(world, state)
    stranger = next(client for client in range(6) if client not in sent.owner)
    assert torch.equal(models[stranger], state.models[0].flat)
    assert not torch.equal(models[sent.owner[0]], state.models[0].flat)


def test_it_goes_on_from_disk(tiny: Tiny, tmp_path: Path):
    config = tiny("local=ditto", *WORDS, "rounds=4")
    world = world_of(config)
    states = [state for state, _, _ in rounds_with_rows(world)]
    checkpoint.save(tmp_path, states[1], config, {"name": "loop", "reason": ""})
    loaded = checkpoint.load(tmp_path, config, torch.device("cpu"))
    assert loaded is not None
    *_, (state, _, _) = run_rounds(world.exp, world, loaded.state)
    assert same(state.memory["companion"], states[-1].memory["companion"])


def test_a_client_trains_two_models_in_twice_the_time(tiny: Tiny):
    words = ("fleet=simulated", "fleet.link=own", "fleet.upload_mbit=1e9", "rounds=1", *WORDS[:2])
    seconds = [next(rounds_with_rows(world_of(tiny(f"local={rule}", *words))))[0].sim_s for rule in ("ditto", "sgd")]
    assert seconds[0] > 1.5 * seconds[1]
