"""FedRep: the head under a body that rests, then the body under a head that rests, each bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_training import plain_pytorch
from worlds import Tiny, demand_same_rounds, first_round, rounds_with_rows, train_first_round, world_of

from fedexp.parts.local.fedrep import FedRep
from fedexp.simulation.setup import compatibility

UNEQUAL = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model.hidden=[6]")
HEAD, BODY = ("3.weight", "3.bias"), ("1.weight", "1.bias")


def test_the_first_epochs_are_the_heads_by_hand():
    rule = FedRep(epochs=1, head_epochs=2)
    assert rule.steps_in(2) == 6
    assert rule.first_phase(6, 2).tolist() == [True, True, True, True, False, False]
    assert FedRep(epochs=None, steps=1).first_phase(3, 2).tolist() == [True, True, False]
    assert rule.passes(np.array([5, 9])).tolist() == [3, 3]
    headless = FedRep(epochs=1, head_epochs=2, layers=())
    assert headless.steps_in(2) == 2
    assert headless.first_phase(2, 2).tolist() == [False, False]
    assert headless.passes(np.array([5, 9])).tolist() == [1, 1]


@pytest.mark.law("local=fedrep", "a client trains the head under a still body, then the body under a still head")
@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_client_does_what_plain_pytorch_does(tiny: Tiny, engine: str):
    """A part without gradients waits with its momentum, and without decay."""
    words = ("local=fedrep", *UNEQUAL, "local.head_epochs=2", "local.momentum=0.9", "local.weight_decay=0.1")
    world = world_of(tiny(*words, f"engine={engine}"))
    out = train_first_round(world)
    for row, batches in enumerate(first_round(world).batches):
        frozen = [BODY] * (batches.steps - batches.epoch) + [HEAD] * batches.epoch
        expected = plain_pytorch(world, row, frozen, lr=world.exp.local.lr, momentum=0.9, weight_decay=0.1)
        torch.testing.assert_close(out[row, :-2], expected, atol=1e-9, rtol=0)


@pytest.mark.law("local=fedrep", "in the first phase the body keeps its bytes, in the second the head does")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_in_the_first_phase_the_body_keeps_its_bytes(tiny: Tiny, engine: str):
    words = ("local=fedrep", "model.hidden=[6]", "local.batch_size=full", "local.lr=0.5", f"engine={engine}")
    world = world_of(tiny(*words, "local.head_epochs=2"))
    task, out, first = first_round(world), train_first_round(world), world.first.flat
    head = world.exp.local.private_columns(world.layout)
    body = np.setdiff1d(np.arange(world.layout.size), head)
    assert (out[:, head] != first[head]).any(dim=1).all()
    assert (out[:, body] != first[body]).any(dim=1).all()
    for row, batches in enumerate(task.batches):
        assert batches.steps == 3
        bounds = batches.bounds[:3]
        only_head = replace(task, batches=(replace(batches, order=batches.order[: bounds[-1]], bounds=bounds),) * 6)
        alone = world.trainer.run(only_head, np.array([row]))[0]
        assert torch.equal(alone[head], out[row, head])
        assert torch.equal(alone[body], first[body])


@pytest.mark.law("local=fedrep", "heads are in no upload, and the global head keeps its first bytes")
def test_heads_stay_with_their_clients_and_bodies_are_averaged(tiny: Tiny):
    world = world_of(tiny("algorithm=fedrep", "model.hidden=[6]", "rounds=3", "selector=all"))
    head = world.exp.local.private_columns(world.layout)
    for state, _, sent in rounds_with_rows(world):
        assert not sent.delta[:, head].any()
        assert torch.equal(state.models[0].flat[head], world.first.flat[head])
        heads = state.memory["personal"]["rows"]
        assert len(heads) == len(sent.owner)
        assert len({tuple(row.tolist()) for row in heads}) == len(heads)


@pytest.mark.law("local=fedrep", "without a head (layers=[]) it is FedAvg, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_without_a_head_it_is_fedavg_to_the_byte(tiny: Tiny, engine: str):
    words = (*UNEQUAL, "rounds=3", "local.momentum=0.9", "aggregator.weighting=uniform", f"engine={engine}")
    words = (*words, "evaluation.personal_fraction=0.2")
    world = world_of(tiny("algorithm=fedrep", *words, "local.layers=[]", "local.head_epochs=2"))
    compatibility.refuse(world.exp)
    demand_same_rounds(world, world_of(tiny("local=sgd", *words)))


@pytest.mark.law("local=fedrep", "both phases at once are FedPer, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_both_phases_at_once_are_fedper_to_the_byte(tiny: Tiny, engine: str, monkeypatch: pytest.MonkeyPatch):
    """No setting says so: here the mask of the phases is taken away, which leaves their steps."""
    words = (*UNEQUAL, "rounds=3", "local.momentum=0.9", "local.weight_decay=0.1", f"engine={engine}")
    monkeypatch.setattr(FedRep, "phase_columns", lambda *_: None)
    fedrep = world_of(tiny("local=fedrep", *words, "local.epochs=1", "local.head_epochs=2"))
    demand_same_rounds(fedrep, world_of(tiny("local=personal_layer", *words, "local.epochs=3")))
