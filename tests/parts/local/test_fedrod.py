"""FedRoD: the balanced soft-max by hand, heads that leave the body alone, its limits, plain PyTorch on both engines."""

import math

import numpy as np
import pytest
import torch
from pairs import own_models, train_pairs
from plain_training import AUTOGRAD_SGD
from torch import nn
from worlds import Tiny, first_round, rounds_with_rows, train_first_round, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.local.fedrod import FedRoDCompanion, balance_logits
from fedexp.simulation.setup import compatibility

ENGINES = pytest.mark.parametrize("engine", ["loop", "stacked"])
WORDS = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model.hidden=[6]", "local.epochs=2")


def test_the_balanced_softmax_by_hand():
    """With counts (1, 3) and equal logits class 1 has three quarters: -log 3/4."""
    balanced = balance_logits(torch.zeros(1, 2), torch.tensor([1.0, 3.0]))
    assert nn.functional.cross_entropy(balanced, torch.tensor([1])).item() == pytest.approx(-math.log(0.75))


@pytest.mark.law("local=fedrod", "with as many examples of every class a client sends what it sends for FedAvg")
@pytest.mark.usefixtures("_double")
@ENGINES
def test_with_equal_counts_it_is_fedavg(tiny: Tiny, engine: str):
    """To the byte with one example of each, whose logarithm is 0; adding that of 7 to the logits rounds them."""
    words = ("federation=iid", "model.hidden=[6]", "local.epochs=2", "local.momentum=0.9", f"engine={engine}")
    world = world_of(tiny("local=fedrod", *words))
    sgd = train_first_round(world_of(tiny(*AUTOGRAD_SGD, *words)))[:, :-2]
    for count, tolerance in ((1.0, 0.0), (7.0, 1e-14)):
        task = first_round(world)
        assert task.counts is not None
        task.counts.fill_(count)
        for row, expected in enumerate(sgd):
            out = world.trainer.run(task, np.array([row]))[0, :-2]
            torch.testing.assert_close(out, expected, atol=tolerance, rtol=0)


@pytest.mark.law("local=fedrod", "p = 0: a client uses the body and the generic head that it trained, to the byte")
def test_without_a_personal_head_the_generic_one_answers(tiny: Tiny):
    world = world_of(tiny("local=fedrod", *WORDS))
    rule, trained = world.exp.local.companion, train_first_round(world)[:, :-2]
    assert isinstance(rule, FedRoDCompanion)
    assert torch.equal(rule.combine(rule.first_private(trained, world.layout), trained, world.layout), trained)
    assert not torch.equal(rule.combine(torch.ones(6, 70), trained, world.layout), trained)


@pytest.mark.law("local=fedrod", "whatever the personal head is, body and generic head train to the same bytes")
@ENGINES
def test_no_gradient_of_the_personal_head_reaches_the_body(tiny: Tiny, engine: str):
    world = world_of(tiny("local=fedrod", *WORDS, "local.momentum=0.9", f"engine={engine}"))
    noise = torch.randn(6, 70 + world.layout.size, generator=torch.Generator().manual_seed(0))
    plain, _ = train_pairs(world)
    moved, _ = train_pairs(world, {"owner": torch.arange(6), "rows": noise})
    assert torch.equal(moved[:, 70:], plain[:, 70:])
    assert (moved[:, :70] != plain[:, :70]).any(dim=1).all()
    assert (plain[:, 70:] != world.first.flat).any(dim=1).all()


@pytest.mark.law("local=fedrod", "the personal head passes no gradient on to the body")
@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_client_does_what_plain_pytorch_does(tiny: Tiny, engine: str):
    """A body, a generic head and an own one as three modules; the own one gets features that pass no gradients on."""
    world = world_of(tiny("local=fedrod", *WORDS, f"engine={engine}"))
    out, _ = train_pairs(world)
    sent, task = train_first_round(world), first_round(world)
    for row, (shard, batches) in enumerate(zip(task.plan.shards, task.batches, strict=True)):
        network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).double()
        network.load_state_dict(world.layout.views(world.first.flat.double()))
        assert isinstance(network, nn.Sequential)
        body, generic = network[:-1], network[-1]
        own = nn.Linear(6, 10).double()
        nn.init.zeros_(own.weight)
        nn.init.zeros_(own.bias)
        descend = torch.optim.SGD([*network.parameters(), *own.parameters()], lr=world.exp.local.lr)
        counts = torch.from_numpy(np.bincount(world.labels[shard], minlength=10)).double().clamp(min=1e-8)
        for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
            index = torch.from_numpy(shard[batches.order[a:b]])
            features, y = body(world.train.x[index].double()), world.train.y[index]
            logits = generic(features)
            losses = [nn.functional.cross_entropy(logits + counts.log(), y)]
            losses += [nn.functional.cross_entropy(logits.detach() + own(features.detach()), y)]
            descend.zero_grad()
            torch.stack(losses).sum().backward()
            descend.step()
        expected = torch.cat([own.weight.detach().reshape(-1), own.bias.detach(), world.layout.flatten(network)])
        torch.testing.assert_close(out[row], expected, atol=1e-9, rtol=0)
        torch.testing.assert_close(sent[row, :-2], expected[70:], atol=1e-9, rtol=0)


def test_clients_use_both_heads_as_one_layer(tiny: Tiny):
    world = world_of(tiny("algorithm=fedrod", *WORDS, "selector=all", "rounds=2"))
    *_, (state, _, _) = rounds_with_rows(world)
    kept = state.memory["companion"]
    models = own_models(world, state)[kept["owner"]]
    assert torch.equal(models, kept["rows"][:, 70:])
    assert not state.memory["local"].get("rows", torch.zeros(0)).any()


def test_what_has_no_classes_or_no_linear_layer_is_refused(tiny: Tiny):
    with pytest.raises(ConfigError, match="local=fedrod needs targets that are classes"):
        compatibility.refuse(spec.build(tiny("local=fedrod", "dataset=diabetes")))
