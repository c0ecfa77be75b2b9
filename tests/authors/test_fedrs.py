"""FedRS beside its authors' program.

Of github.com/lxcnju/FedRepo at 617ee015046409d95dbd76ba39eebb92d313ab94 ran FedRS.train of algorithms/fedrs.py, with
update_local, update_global and construct_optimizer, on a network without output biases; for a newer PyTorch its
loader_iter.next() was next(loader_iter). Set as here: full batches, three local steps, rate 0.5, momentum 0.5, alpha
0.25, no weight decay. To make it the same as ours its max_grad_norm, 100 by default, was out of reach.

Of clients that hold as many examples of each class that they have (the first two) all agrees. The program differs from
ours in two things. (1) It scales the logit of class c by alpha + (1 - alpha) n_c / max n, where n counts the client's
examples of classes; the paper's rule and ours is 1 where n_c > 0, else alpha. (2) It leaves the output biases out of
the logits that it trains, so that they never move, but not of those that it tests; ours scales them with the logits.
Besides, a client of it takes five steps at least where local_epochs says how many, and its gradients are clipped to a
length of 100. Its mean is by numbers of examples, with weights in float32.
"""

import pytest
import torch
from authors.three_clients import INPUTS, LABELS, assert_agrees, assert_same, states, three_clients, unbiased
from torch import nn
from worlds import Tiny, train_first_round

pytestmark = pytest.mark.usefixtures("_double")

WORDS = (
    *("local=fedrs", "local.lr=0.5", "local.momentum=0.5", "local.alpha=0.25", "local.epochs=3"),
    *("local.batch_size=full", "rounds=1", "model.factory=authors.three_clients:unbiased"),
)
EQUAL_CLASSES = """
0.8845114624 -0.5141948831 -0.1566407773 0.8942614837 -0.5023183987 0.2728911634 0.1083219225 -0.2236596991 0.3269196908
1.108689856 -0.5992613825 0.006573965965 -0.5100194765 0.6306600226 0.6354453963 0.1003324051 0.24215034 -0.6292548406
1.014335359 0.1574103758 -0.05289656032 0.4942590322 0.1567084055 0.5576740821 0.3117972234 -0.4338026488 -0.1073823022
1.167561965 -0.03229184932 0.1032154021 -0.2538917132 0.5343133073 0.3588344001 -0.2769951127 -0.35496138 -0.4135530024
"""
UNEQUAL_CLASSES = """
0.4709084528 -0.1569924719 0.3644760506 0.7528116829 -0.5360953467 -0.2121162105 0.05601355777 0.009766353074
-0.2107342496 0.7110108728 -0.4894425531 0.2766935189 -0.1856779406 0.338860575 0.35806943 0.1780412136 0.4655932925
-0.7046851636
"""
MEAN = """
0.7754935566 -0.2458818026 0.04011910545 0.7582221277 -0.3671269871 0.1745071315 0.1361025359 -0.1925494497
0.05119015551 0.9892128987 -0.4366618834 0.1180896946 -0.3449883544 0.5119831652 0.4815176369 0.04238478339 0.1839398357
-0.6064645495
"""


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_clients_with_as_many_examples_of_each_class(tiny: Tiny, tmp_path, engine: str):
    world = three_clients(tiny, tmp_path, *WORDS, f"engine={engine}")
    assert_agrees(train_first_round(world)[:2, :18], EQUAL_CLASSES)


def trained_on_scaled_logits(scales: list[float]) -> torch.Tensor:
    """The third client's model if its three logits are scaled by this, written out."""
    layers, x, y = unbiased(), torch.tensor(INPUTS)[6:], torch.tensor(LABELS)[6:]
    descent = torch.optim.SGD(layers.parameters(), lr=0.5, momentum=0.5)
    for _ in range(3):
        descent.zero_grad()
        nn.functional.cross_entropy(layers(x) * torch.tensor(scales), y).backward()
        descent.step()
    return nn.utils.parameters_to_vector(layers.parameters()).detach()


def test_its_scale_follows_the_counts(tiny: Tiny, tmp_path):
    """The third client holds no example of the first class, one of the second and two of the third."""
    ours = train_first_round(three_clients(tiny, tmp_path, *WORDS))[2, :18]
    assert_same(ours, trained_on_scaled_logits([0.25, 1.0, 1.0]))
    assert_agrees(trained_on_scaled_logits([0.25, 0.25 + 0.75 / 2, 1.0]), UNEQUAL_CLASSES)


def test_the_mean_is_by_examples(tiny: Tiny, tmp_path):
    """Ours, with the program's model of the third client in the stead of ours."""
    world = three_clients(tiny, tmp_path, *WORDS)
    [state] = states(world)
    difference = trained_on_scaled_logits([0.25, 0.625, 1.0]) - trained_on_scaled_logits([0.25, 1.0, 1.0])
    assert_agrees(state.models[0].flat + difference / 3, MEAN, within=1e-6)
