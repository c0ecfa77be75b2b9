"""SPAHM on whole networks: permutations, agreement, the output bias and the prior of popularities."""

from collections.abc import Callable

import numpy as np
import pytest

from fedexp.maths.matching import estimates
from fedexp.maths.matching.estimates import match_one_layer
from fedexp.maths.matching.gains import Buffet
from fedexp.maths.matching.networks import Network

Drawn = Callable[..., Network]
SHARE = np.array([0.5, 0.25, 0.125, 0.125])


def permuted(net: Network, seed: int) -> Network:
    order = np.random.default_rng(seed).permutation(net.hidden[0])
    return Network((net.weights[0][order], net.weights[1][:, order]), (net.biases[0][order], net.biases[1]))


def matched(nets: list[Network]) -> Network:
    return match_one_layer(nets, SHARE, 1.0, 5, np.random.default_rng(0))[0]


def forward(net: Network) -> np.ndarray:
    x = np.random.default_rng(9).normal(size=(11, 7))
    return np.maximum(x @ net.weights[0].T + net.biases[0], 0) @ net.weights[1].T + net.biases[1]


@pytest.mark.law("aggregator=spahm", "the order of a client's hidden units does not matter")
@pytest.mark.parametrize("alike", [True, False])
def test_permuting_hidden_units_changes_nothing(drawn: Drawn, alike: bool):
    """Noisy copies of one network, which share units; and networks that have nothing in common."""
    noise = [drawn((7, 5, 3), seed) for seed in range(4)]
    size, base = (0.05, drawn((7, 5, 3), 7)) if alike else (1.0, noise[0])
    nets = [
        Network(
            tuple(size * w + alike * b for w, b in zip(each.weights, base.weights, strict=True)),
            tuple(size * w + alike * b for w, b in zip(each.biases, base.biases, strict=True)),
        )
        for each in noise
    ]
    net, turned = matched(nets), matched([permuted(each, seed) for seed, each in enumerate(nets)])
    assert turned.hidden == net.hidden
    assert (net.hidden == (5,)) == alike
    np.testing.assert_allclose(forward(turned), forward(net), rtol=1e-9, atol=1e-9)


@pytest.mark.law("aggregator=spahm", "equal networks with their units in other orders give the network back")
def test_equal_nets_give_the_net_back(drawn: Drawn):
    net = drawn((7, 5, 3), 1)
    found = matched([permuted(net, seed) for seed in range(4)])
    assert found.hidden == (5,)
    np.testing.assert_allclose(forward(found), forward(net), rtol=1e-6, atol=1e-6)


@pytest.mark.law("aggregator=spahm", "the output bias is the clients' mean by their shares")
def test_the_output_bias_is_the_mean_by_shares(drawn: Drawn):
    nets = [drawn((7, 5, 3), seed) for seed in range(4)]
    wanted = sum(part * net.biases[1] for part, net in zip(SHARE, nets, strict=True))
    np.testing.assert_allclose(matched(nets).biases[1], wanted)


def test_the_prior_of_popularities_has_factor_two(drawn: Drawn, monkeypatch: pytest.MonkeyPatch):
    asked, match = [], estimates.match_estimated

    def told(atoms, buffet, *more):
        asked.append(buffet)
        return match(atoms, buffet, *more)

    monkeypatch.setattr(estimates, "match_estimated", told)
    match_one_layer([drawn((7, 5, 3), seed) for seed in range(4)], SHARE, 3.0, 1, np.random.default_rng(0))
    assert asked == [Buffet(3.0, 2.0, 4)]
