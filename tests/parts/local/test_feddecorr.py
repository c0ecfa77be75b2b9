"""FedDecorr: correlations by hand, a client's training in plain PyTorch, its limiting case, both engines."""

import numpy as np
import pytest
import torch
from plain_training import AUTOGRAD_SGD
from torch import nn
from worlds import Tiny, demand_same_rounds, first_round, train_first_round, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts import ModelOutputs
from fedexp.parts.local.feddecorr import FedDecorr, decorrelation_cost
from fedexp.simulation.setup import compatibility

UNEQUAL = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model.hidden=[6]")
FEDDECORR = ("local=feddecorr", *UNEQUAL)


@pytest.mark.law("local=feddecorr", "of two features that correlate fully the cost is 1, of two that do not 1/2")
def test_correlations_by_hand():
    """A column and its double have correlation 1: a mean of 1. Two that have nothing to do with each other: 1/2."""
    first, other = torch.tensor([1.0, -1.0, 1.0, -1.0]), torch.tensor([1.0, 1.0, -1.0, -1.0])
    share = torch.full((4,), 0.25)
    assert decorrelation_cost(torch.stack([first, 2 * first + 5], dim=1), share).item() == pytest.approx(1)
    assert decorrelation_cost(torch.stack([first, other], dim=1), share).item() == pytest.approx(0.5)
    assert decorrelation_cost(torch.stack([first, 0 * first], dim=1), share).item() == pytest.approx(0.25)
    padded = torch.stack([first, other], dim=1).repeat(2, 1)
    padded[4:] *= 7
    halves = torch.cat([share, torch.zeros(4)])
    assert decorrelation_cost(padded, halves).item() == pytest.approx(0.5)


@pytest.mark.usefixtures("_double")
def test_a_client_does_what_plain_pytorch_does(tiny: Tiny):
    """The features of the hidden layer are normalised as batch normalisation does it."""
    world = world_of(tiny(*FEDDECORR, "local.beta=3"))
    task, facts = first_round(world), world.exp.dataset.facts(world.exp.data_dir)
    for row, batches in enumerate(task.batches):
        network = world.exp.model.network(facts)
        network.load_state_dict(world.layout.views(world.first.flat.clone()))
        assert isinstance(network, nn.Sequential)
        descend = torch.optim.SGD(network.parameters(), lr=world.exp.local.lr)
        for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
            index = torch.from_numpy(task.plan.shards[row][batches.order[a:b]])
            features = network[:-1](world.train.x[index].double())
            loss = nn.functional.cross_entropy(network[-1](features), world.train.y[index])
            if b - a > 1:
                normalised = nn.functional.batch_norm(features, None, None, training=True, eps=1e-8)
                loss = loss + 3 * (normalised.T @ normalised / len(index)).norm() ** 2 / 36
            descend.zero_grad()
            loss.backward()
            descend.step()
        out = world.trainer.run(task, np.array([row]))
        torch.testing.assert_close(out[0, :-2], world.layout.flatten(network), atol=1e-9, rtol=0)


@pytest.mark.law("local=feddecorr", "beta = 0 is FedAvg, to the byte where autograd takes the gradients of both")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_without_the_cost_it_is_fedavg_to_the_byte(tiny: Tiny, engine: str):
    words = (*UNEQUAL, "rounds=3", "local.momentum=0.9", f"engine={engine}")
    world = world_of(tiny("algorithm=feddecorr", *words, "local.beta=0"))
    demand_same_rounds(world, world_of(tiny(*AUTOGRAD_SGD, *words)))


@pytest.mark.law("local=feddecorr", "beta = 0 is SGD, whichever formula gives the gradient")
@pytest.mark.usefixtures("_double")
def test_the_engines_agree_and_without_the_cost_it_is_sgd(tiny: Tiny):
    one, other = (train_first_round(world_of(tiny(*FEDDECORR, f"engine={engine}"))) for engine in ("loop", "stacked"))
    torch.testing.assert_close(one, other, atol=1e-9, rtol=0, equal_nan=True)
    flat = train_first_round(world_of(tiny(*FEDDECORR, "local.beta=0")))
    plain = train_first_round(world_of(tiny("local=sgd", *UNEQUAL)))
    torch.testing.assert_close(flat, plain, atol=1e-12, rtol=0, equal_nan=True)
    assert (one != plain).any()


def test_what_protects_single_examples_is_refused(tiny: Tiny):
    words = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    with pytest.raises(ConfigError, match="local=feddecorr makes an example's cost depend on other models or examples"):
        compatibility.refuse(spec.build(tiny("local=feddecorr", *words)))


def test_in_texts_every_position_counts_as_an_example():
    features = torch.randn(3, 5, 4)
    rule, share = FedDecorr(beta=2.0), torch.tensor([0.5, 0.5, 0.0])
    cost = rule.cost_of_batch(ModelOutputs(features, features), share)
    expected = 2 * decorrelation_cost(features[:2].reshape(10, 4), torch.full((10,), 0.1))
    torch.testing.assert_close(cost, expected)
