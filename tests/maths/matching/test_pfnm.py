"""PFNM on whole networks: what permutations, agreement and the prior do."""

from collections.abc import Callable

import numpy as np
import pytest

from fedexp.maths.matching import pfnm
from fedexp.maths.matching.gains import Buffet
from fedexp.maths.matching.networks import Network
from fedexp.maths.matching.pfnm import Variances, match_networks, output_bias

Drawn = Callable[..., Network]
DEEP = [(7, 5, 3), (7, 5, 6, 3), (6, 5, 4, 6, 3)]


def permuted(net: Network, seed: int) -> Network:
    """The same function with its hidden units in another order."""
    rng = np.random.default_rng(seed)
    orders = [np.arange(net.weights[0].shape[1]), *(rng.permutation(width) for width in net.hidden)]
    orders.append(np.arange(len(net.biases[-1])))
    weights = tuple(w[above][:, below] for w, below, above in zip(net.weights, orders, orders[1:], strict=False))
    return Network(weights, tuple(b[order] for b, order in zip(net.biases, orders[1:], strict=True)))


def forward(net: Network, x: np.ndarray) -> np.ndarray:
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        x = np.maximum(x @ weight.T + bias, 0)
    return x @ net.weights[-1].T + net.biases[-1]


def shares(clients: int, classes: int, seed: int = 3) -> np.ndarray:
    share = np.random.default_rng(seed).random((clients, classes))
    return share / share.sum(axis=0)


def matched(nets: list[Network], share: np.ndarray, *values: float, sweeps: int = 3, factor: float = 2.0) -> Network:
    variances = [Variances(*values)] * len(nets[0].hidden)
    return match_networks(nets, share, variances, factor, sweeps, np.random.default_rng(0))[0]


INPUTS = np.random.default_rng(9).normal(size=(11, 7))


@pytest.mark.law("aggregator=pfnm", "the order of a client's hidden units does not matter")
@pytest.mark.parametrize("widths", DEEP)
def test_permuting_hidden_units_changes_nothing(drawn: Drawn, widths: tuple[int, ...]):
    nets, share = [drawn(widths, seed) for seed in range(4)], shares(4, 3)
    net = matched(nets, share, 0.5, 1.0, 1.0)
    turned = matched([permuted(each, seed) for seed, each in enumerate(nets)], share, 0.5, 1.0, 1.0)
    x = INPUTS[:, : widths[0]]
    assert turned.hidden == net.hidden
    np.testing.assert_allclose(forward(turned, x), forward(net, x), rtol=1e-9, atol=1e-9)


@pytest.mark.law("aggregator=pfnm", "with s near 0, equal networks, their units in any order, give the network back")
@pytest.mark.parametrize("widths", DEEP)
def test_equal_nets_give_the_net_back(drawn: Drawn, widths: tuple[int, ...]):
    net = drawn(widths, 1)
    found = matched([permuted(net, seed) for seed in range(5)], shares(5, 3), 1e-9, 1.0, 1.0)
    x = INPUTS[:, : widths[0]]
    assert found.hidden == net.hidden
    np.testing.assert_allclose(forward(found, x), forward(net, x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("widths", DEEP)
def test_layers_grow_where_nets_differ(drawn: Drawn, widths: tuple[int, ...]):
    nets = [drawn(widths, seed) for seed in range(3)]
    net = matched(nets, shares(3, 3), 0.01, 1.0, 1.0)
    assert all(width > local for width, local in zip(net.hidden, nets[0].hidden, strict=True))
    assert [weight.shape for weight in net.weights] == [
        (above, below) for below, above in zip((widths[0], *net.hidden), (*net.hidden, 3), strict=True)
    ]
    assert np.isfinite(forward(net, INPUTS[:, : widths[0]])).all()


@pytest.mark.law(
    "aggregator=pfnm", "what enters a unit that all m clients share shrinks by the factor (m / s) / (m / s + 1 / s0)"
)
def test_shrinkage_by_hand(drawn: Drawn):
    """Four equal clients: (m / s) / (m / s + 1 / s0) with m = 4; output weights count 1 in all, their shares add up."""
    net, s, s0 = drawn((7, 5, 3), 1), 0.5, 2.0
    found = matched([permuted(net, 0)] * 4, shares(4, 3), s, s0, 1.0)
    assert found.hidden == net.hidden
    order = [int(np.argmin(np.abs(found.biases[0] - bias))) for bias in (8 * net.biases[0] + 0.05) / 8.5]
    np.testing.assert_allclose(found.weights[0][order], net.weights[0] * (4 / s) / (4 / s + 1 / s0))
    np.testing.assert_allclose(found.biases[0][order], (8 * net.biases[0] + 0.05) / 8.5)
    np.testing.assert_allclose(found.weights[1][:, order], net.weights[1] * (1 / s) / (1 / s + 1 / s0))
    np.testing.assert_allclose(found.biases[1], (2 * net.biases[1] + 0.05) / 2.5)


def test_the_authors_defaults_halve_a_lonely_unit(drawn: Drawn):
    """Four units that look at four different inputs are nobody's twins."""
    nets = [drawn((7, 2, 3), seed) for seed in (1, 2)]
    far = [
        Network((50 * np.eye(7)[2 * number : 2 * number + 2], net.weights[1]), net.biases)
        for number, net in enumerate(nets)
    ]
    found = matched(far, shares(2, 3), 1.0, 1.0, 1.0)
    assert found.hidden == (4,)
    assert sorted(found.weights[0].tolist(), reverse=True) == (25 * np.eye(7)[:4]).tolist()


def test_output_weights_listen_to_those_who_have_the_class(drawn: Drawn):
    """Client 0 alone has class 0, client 1 three quarters of class 1, nobody class 2: there the prior speaks."""
    base = drawn((7, 4, 3), 1)
    other = Network((base.weights[0], base.weights[1] + 0.1), (base.biases[0], base.biases[1] + 0.1))
    share = np.array([[1.0, 0.25, 0.0], [0.0, 0.75, 0.0]])
    found = matched([base, other], share, 0.01, 1.0, 1.0)
    assert found.hidden == (4,)
    wanted = np.stack([base.weights[1][0], base.weights[1][1] + 0.075, np.zeros(4)])
    np.testing.assert_allclose(found.weights[1], wanted * 100 / 101)
    biases = np.array([base.biases[1][0], base.biases[1][1] + 0.075, 0.1])
    np.testing.assert_allclose(found.biases[1][:2], (100 * biases[:2] + 0.1) / 101)
    assert found.biases[1][2] == 0.1


def test_output_bias_by_hand():
    found = output_bias(
        np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.25, 0.0], [0.75, 0.0]]), Variances(0.5, 2.0, 1.0)
    )
    assert found == pytest.approx([(2 * 2.5 + 0.05) / 2.5, 0.1])


def test_clients_of_different_widths(drawn: Drawn):
    wide = drawn((7, 6, 3), 1)
    narrow = Network((wide.weights[0][:4], wide.weights[1][:, :4]), (wide.biases[0][:4], wide.biases[1]))
    found, (layer,) = match_networks(
        [narrow, wide], shares(2, 3), [Variances(1e-9, 1.0, 1.0)], 2.0, 2, np.random.default_rng(0)
    )
    assert found.hidden == (6,)
    assert layer.assigned[0].tolist() == layer.assigned[1][:4].tolist()
    assert sorted(layer.popularity.tolist()) == [1, 1, 2, 2, 2, 2]


def test_missing_connections_count_as_zeros(drawn: Drawn):
    """The clients share the lower units, not the upper: each weight between them is one observation, and one of 0."""
    one, upper = drawn((7, 2, 2, 3), 1), drawn((7, 2, 2, 3), 2)
    strong = 30 * one.weights[0]
    nets = [
        Network((strong, one.weights[1], 50 * np.eye(3)[:, :2]), one.biases),
        Network((strong, upper.weights[1], -50 * np.eye(3)[:, :2]), one.biases),
    ]
    found, layers = match_networks(
        nets, np.full((2, 3), 0.5), [Variances(0.1, 1.0, 1.0)] * 2, 2.0, 3, np.random.default_rng(0)
    )
    assert found.hidden == (2, 4)
    for client, net in enumerate(nets):
        above, below = layers[1].assigned[client], layers[0].assigned[client]
        np.testing.assert_allclose(found.weights[1][np.ix_(above, below)], net.weights[1] * 10 / 21)


def test_each_layer_has_its_own_variances(drawn: Drawn):
    """Four equal clients and s0 = 1: 4 / (4 + s) of a layer's own s; output weights and biases go with the last."""
    net, s = drawn((7, 5, 4, 3), 1), (0.5, 2.0)
    variances = [Variances(each, 1.0, 1.0) for each in s]
    found, layers = match_networks([net] * 4, shares(4, 3), variances, 2.0, 2, np.random.default_rng(0))
    assert found.hidden == (5, 4)
    lower, upper = (layer.assigned[0] for layer in layers)
    np.testing.assert_allclose(found.weights[0][lower], net.weights[0] * 4 / (4 + s[0]))
    np.testing.assert_allclose(found.weights[1][np.ix_(upper, lower)], net.weights[1] * 4 / (4 + s[0]))
    np.testing.assert_allclose(found.biases[1][upper], (net.biases[1] * 4 + 0.1 * s[1]) / (4 + s[1]))
    np.testing.assert_allclose(found.weights[2][:, upper], net.weights[2] / (1 + s[1]))
    np.testing.assert_allclose(found.biases[2], (net.biases[2] + 0.1 * s[1]) / (1 + s[1]))


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_prior_of_popularities_is_what_was_asked_for(drawn: Drawn, factor: float, monkeypatch: pytest.MonkeyPatch):
    asked, match = [], pfnm.match_given

    def told(groups, prior, buffet, *more):
        asked.append(buffet)
        return match(groups, prior, buffet, *more)

    monkeypatch.setattr(pfnm, "match_given", told)
    variances = [Variances(0.5, 1.0, gamma) for gamma in (3.0, 4.0)]
    nets = [drawn((7, 5, 4, 3), seed) for seed in range(3)]
    match_networks(nets, shares(3, 3), variances, factor, 1, np.random.default_rng(0))
    assert asked == [Buffet(4.0, factor, 3), Buffet(3.0, factor, 3)]
