"""FedNTD: the divergence by hand, a client's training in plain PyTorch, its limiting case, both engines."""

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
from fedexp.parts.local.fedntd import not_true_divergence
from fedexp.simulation.setup import compatibility

UNEQUAL = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model.hidden=[6]")
FEDNTD = ("local=fedntd", *UNEQUAL)


@pytest.mark.law("local=fedntd", "the divergence gives the logit of the true class no gradient")
@pytest.mark.law("local=fedntd", "the divergence of logits that differ by a constant is 0")
def test_the_divergence_by_hand():
    """Without class 0, p = (1/2, 1/2) and q = (1/4, 3/4): KL = ln 2 - ln(3) / 2; logits of class 0 do not matter."""
    received = torch.tensor([[9.0, 0.0, 0.0]], dtype=torch.float64)
    own = torch.tensor([[-5.0, 0.0, math.log(3)]], dtype=torch.float64, requires_grad=True)
    cost = not_true_divergence(received, own, torch.tensor([0]), 1.0)
    assert cost.item() == pytest.approx(math.log(2) - math.log(3) / 2)
    cost.sum().backward()
    assert own.grad is not None
    assert own.grad.tolist() == [pytest.approx([0.0, 1 / 4 - 1 / 2, 3 / 4 - 1 / 2])]  # q - p
    warm = not_true_divergence(received, 2 * own, torch.tensor([0]), 2.0)
    assert warm.item() == pytest.approx(cost.item())
    assert not_true_divergence(own, own + 7, torch.tensor([1]), 1.0).item() == pytest.approx(0, abs=1e-12)


def test_each_position_of_a_sequence_has_a_divergence_of_its_own():
    received, own = torch.randn((2, 2, 3, 5), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    targets = torch.tensor([[0, 4, 2], [1, 1, 3]])
    together = not_true_divergence(received, own, targets, 2.0)
    singly = [not_true_divergence(received[row], own[row], targets[row], 2.0) for row in range(2)]
    assert torch.equal(together, torch.stack(singly))
    assert together.shape == (2, 3)


@pytest.mark.usefixtures("_double")
def test_a_client_does_what_plain_pytorch_does(tiny: Tiny):
    """Logits without the true class are gathered one by one, and PyTorch's own divergence is taken of them."""
    world = world_of(tiny(*FEDNTD, "local.beta=3", "local.temperature=2"))
    task, facts = first_round(world), world.exp.dataset.facts(world.exp.data_dir)
    network, received = world.exp.model.network(facts), world.exp.model.network(facts)
    received.load_state_dict(world.layout.views(world.first.flat.clone()))
    for row, batches in enumerate(task.batches):
        network.load_state_dict(world.layout.views(world.first.flat.clone()))
        descend = torch.optim.SGD(network.parameters(), lr=world.exp.local.lr)
        for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
            index = torch.from_numpy(task.plan.shards[row][batches.order[a:b]])
            x, y = world.train.x[index].double(), world.train.y[index]
            others = torch.tensor([[k for k in range(10) if k != label] for label in y.tolist()])
            log_q = (network(x).gather(1, others) / 2).log_softmax(1)
            with torch.no_grad():
                p = (received(x).gather(1, others) / 2).softmax(1)
            descend.zero_grad()
            (F.cross_entropy(network(x), y) + 3 * F.kl_div(log_q, p, reduction="batchmean")).backward()
            descend.step()
        out = world.trainer.run(task, np.array([row]))
        torch.testing.assert_close(out[0, :-2], world.layout.flatten(network), atol=1e-9, rtol=0)


@pytest.mark.law("local=fedntd", "beta = 0 is FedAvg, to the byte where autograd takes the gradients of both")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_without_the_divergence_it_is_fedavg_to_the_byte(tiny: Tiny, engine: str):
    words = (*UNEQUAL, "rounds=3", "local.momentum=0.9", f"engine={engine}")
    world = world_of(tiny("algorithm=fedntd", *words, "local.beta=0"))
    demand_same_rounds(world, world_of(tiny(*AUTOGRAD_SGD, *words)))


@pytest.mark.law("local=fedntd", "beta = 0 is SGD, whichever formula gives the gradient")
@pytest.mark.usefixtures("_double")
def test_the_engines_agree_and_without_the_divergence_it_is_sgd(tiny: Tiny):
    one, other = (train_first_round(world_of(tiny(*FEDNTD, f"engine={engine}"))) for engine in ("loop", "stacked"))
    torch.testing.assert_close(one, other, atol=1e-9, rtol=0, equal_nan=True)
    flat = train_first_round(world_of(tiny(*FEDNTD, "local.beta=0")))
    plain = train_first_round(world_of(tiny("local=sgd", *UNEQUAL)))
    torch.testing.assert_close(flat, plain, atol=1e-12, rtol=0, equal_nan=True)
    assert (one != plain).any()


def test_targets_that_are_no_classes_are_refused(tiny: Tiny):
    exp = spec.build(told(tiny("local=fedntd"), "numbers"))
    with pytest.raises(ConfigError, match=r"^local=fedntd needs targets that are classes, but those of data"):
        compatibility.refuse(exp)
