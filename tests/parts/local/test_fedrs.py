"""FedRS: logits and gradients by hand, a client's training in plain PyTorch, its limiting cases, both engines."""

import numpy as np
import pytest
import torch
from own_targets import told
from plain_training import AUTOGRAD_SGD
from torch.nn import functional as F
from worlds import Tiny, demand_same_rounds, first_round, train_first_round, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.local.fedrs import restrict_logits
from fedexp.simulation.setup import compatibility

UNEQUAL = ("federation=classes", "federation.classes_per_client=3", "local.batch_size=8", "model.hidden=[6]")
FEDRS = ("local=fedrs", *UNEQUAL)


@pytest.mark.law("local=fedrs", "alpha = 0 gives the logit of a class that the client lacks no gradient")
def test_logits_and_gradients_by_hand():
    """The third class is missing: its logit and its gradient are halved, and with alpha 0 it does not move."""
    counts = torch.tensor([4.0, 1.0, 0.0])
    logits = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    assert restrict_logits(logits, counts, 0.5).tolist() == [[1.0, 2.0, 2.0]]
    for alpha, scaled in ((0.5, [1.0, 2.0, 2.0]), (0.0, [1.0, 2.0, 0.0]), (1.0, [1.0, 2.0, 4.0])):
        (grad,) = torch.autograd.grad(
            F.cross_entropy(restrict_logits(logits, counts, alpha), torch.tensor([1])), logits
        )
        chances = torch.tensor(scaled, dtype=torch.float64).softmax(0)
        expected = [chances[0].item(), chances[1].item() - 1, alpha * chances[2].item()]
        assert grad.tolist() == [pytest.approx(expected)]


@pytest.mark.usefixtures("_double")
def test_a_client_does_what_plain_pytorch_does(tiny: Tiny):
    world = world_of(tiny(*FEDRS, "local.alpha=0.3"))
    task, network = first_round(world), world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    for row, batches in enumerate(task.batches):
        present = np.bincount(world.labels[task.plan.shards[row]], minlength=10) > 0
        assert not present.all()
        scales = torch.from_numpy(np.where(present, 1.0, 0.3))
        network.load_state_dict(world.layout.views(world.first.flat.clone()))
        descend = torch.optim.SGD(network.parameters(), lr=world.exp.local.lr)
        for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
            index = torch.from_numpy(task.plan.shards[row][batches.order[a:b]])
            descend.zero_grad()
            F.cross_entropy(network(world.train.x[index].double()) * scales, world.train.y[index]).backward()
            descend.step()
        out = world.trainer.run(task, np.array([row]))
        torch.testing.assert_close(out[0, :-2], world.layout.flatten(network), atol=1e-9, rtol=0)


@pytest.mark.law("local=fedrs", "alpha = 1 is FedAvg, to the byte where autograd takes the gradients of both")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_with_alpha_1_it_is_fedavg_to_the_byte(tiny: Tiny, engine: str):
    words = (*UNEQUAL, "rounds=3", "local.momentum=0.9", f"engine={engine}")
    world = world_of(tiny("algorithm=fedrs", *words, "local.alpha=1"))
    demand_same_rounds(world, world_of(tiny(*AUTOGRAD_SGD, *words)))


@pytest.mark.law("local=fedrs", "alpha = 1 is SGD, whichever formula gives the gradient")
@pytest.mark.usefixtures("_double")
def test_the_engines_agree_and_with_alpha_1_it_is_sgd(tiny: Tiny):
    one, other = (train_first_round(world_of(tiny(*FEDRS, f"engine={engine}"))) for engine in ("loop", "stacked"))
    torch.testing.assert_close(one, other, atol=1e-9, rtol=0, equal_nan=True)
    flat = train_first_round(world_of(tiny(*FEDRS, "local.alpha=1")))
    plain = train_first_round(world_of(tiny("local=sgd", *UNEQUAL)))
    torch.testing.assert_close(flat, plain, atol=1e-12, rtol=0, equal_nan=True)
    assert (one != plain).any()


def test_targets_that_are_no_classes_are_refused(tiny: Tiny):
    exp = spec.build(told(tiny("local=fedrs"), "numbers"))
    with pytest.raises(ConfigError, match=r"^local=fedrs needs targets that are classes, but those of data"):
        compatibility.refuse(exp)
