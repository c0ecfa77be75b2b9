"""FedLC: margins by hand, a client's training in plain PyTorch, its limiting cases, both engines."""

import math

import numpy as np
import pytest
import torch
from own_targets import told
from plain_training import AUTOGRAD_SGD
from torch.nn import functional as F
from worlds import Tiny, demand_same_rounds, first_round, train_first_round, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.local.fedlc import calibrate_logits
from fedexp.simulation.setup import compatibility

FEDLC = ("local=fedlc", "federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model.hidden=[6]")


def test_margins_by_hand():
    """16 examples: a margin of 1/2, 1 example: 1, none: 100."""
    logits = calibrate_logits(torch.zeros(1, 3, dtype=torch.float64), torch.tensor([16.0, 1.0, 0.0]).double(), 1.0)
    assert logits.tolist() == [pytest.approx([-0.5, -1.0, -100.0])]
    cost = F.cross_entropy(logits, torch.tensor([0]))
    assert cost.item() == pytest.approx(math.log(1 + math.exp(-0.5)))


@pytest.mark.usefixtures("_double")
def test_a_client_does_what_plain_pytorch_does(tiny: Tiny):
    world = world_of(tiny(*FEDLC, "local.tau=2"))
    task, network = first_round(world), world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    for row, batches in enumerate(task.batches):
        held = np.bincount(world.labels[task.plan.shards[row]], minlength=10)
        margin = 2 * torch.from_numpy(np.maximum(held, 1e-8)) ** -0.25
        network.load_state_dict(world.layout.views(world.first.flat.clone()))
        descend = torch.optim.SGD(network.parameters(), lr=world.exp.local.lr)
        for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
            index = torch.from_numpy(task.plan.shards[row][batches.order[a:b]])
            descend.zero_grad()
            F.cross_entropy(network(world.train.x[index].double()) - margin, world.train.y[index]).backward()
            descend.step()
        out = world.trainer.run(task, np.array([row]))
        torch.testing.assert_close(out[0, :-2], world.layout.flatten(network), atol=1e-9, rtol=0)


@pytest.mark.law("local=fedlc", "tau = 0 is FedAvg, to the byte where autograd takes the gradients of both")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_without_margins_it_is_fedavg_to_the_byte(tiny: Tiny, engine: str):
    words = (*FEDLC[1:], "rounds=3", "local.momentum=0.9", f"engine={engine}")
    world = world_of(tiny(FEDLC[0], *words, "local.tau=0"))
    demand_same_rounds(world, world_of(tiny(*AUTOGRAD_SGD, *words)))


@pytest.mark.law("local=fedlc", "tau = 0 is SGD, whichever formula gives the gradient")
@pytest.mark.usefixtures("_double")
def test_the_engines_agree_and_without_margins_it_is_sgd(tiny: Tiny):
    one, other = (train_first_round(world_of(tiny(*FEDLC, f"engine={engine}"))) for engine in ("loop", "stacked"))
    torch.testing.assert_close(one, other, atol=1e-9, rtol=0, equal_nan=True)
    flat = train_first_round(world_of(tiny(*FEDLC, "local.tau=0")))
    plain = train_first_round(world_of(tiny("local=sgd", *FEDLC[1:])))
    torch.testing.assert_close(flat, plain, atol=1e-12, rtol=0, equal_nan=True)
    assert (one != plain).any()


def test_targets_that_are_no_classes_are_refused(tiny: Tiny):
    exp = spec.build(told(tiny("local=fedlc"), "numbers"))
    with pytest.raises(ConfigError, match=r"^local=fedlc needs targets that are classes, but those of data"):
        compatibility.refuse(exp)
