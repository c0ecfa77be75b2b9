import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skews import label_skew

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation.dirichlet import Dirichlet, dirichlet_counts, dirichlet_shares
from fedexp.parts.federation.statistics import class_counts, size_gini

LABELS = np.arange(5000) % 10


def skew(alpha):
    partition = Dirichlet(clients=20, alpha=alpha).split(LABELS, None, 10, np.random.default_rng(0))
    return label_skew(class_counts(partition, LABELS, 10)), size_gini(partition.sizes)


@given(alpha=st.floats(5e-324, 1e9), clients=st.integers(1, 30), seed=st.integers(0, 1000))
def test_shares_are_a_distribution_for_every_alpha(alpha, clients, seed):
    shares = dirichlet_shares(clients, alpha, np.random.default_rng(seed))
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_moments_are_those_of_the_dirichlet(alpha):
    """Each share has mean 1/N and variance (N - 1) / (N^2 (N alpha + 1))."""
    rng = np.random.default_rng(0)
    draws = np.stack([dirichlet_shares(5, alpha, rng) for _ in range(20_000)])
    assert draws.mean(axis=0) == pytest.approx(0.2, abs=0.01)
    assert draws.var(axis=0) == pytest.approx(4 / (25 * (5 * alpha + 1)), rel=0.06)


@given(
    totals=st.lists(st.integers(0, 500), min_size=1, max_size=8),
    clients=st.integers(1, 40),
    alpha=st.floats(1e-3, 1e3),
)
def test_counts_cover_each_class_and_stay_within_one_of_the_share(totals, clients, alpha):
    counts = dirichlet_counts(np.array(totals), clients, alpha, np.random.default_rng(3))
    again = np.random.default_rng(3)
    shares = np.stack([dirichlet_shares(clients, alpha, again) for _ in totals])
    assert counts.sum(axis=1).tolist() == totals
    assert (np.abs(counts - shares * np.array(totals)[:, None]) <= 1 + 1e-9).all()


def test_a_large_alpha_is_nearly_iid():
    distance, gini = skew(1e6)
    assert distance < 0.02
    assert gini < 0.02


def test_a_small_alpha_gives_each_class_to_one_client():
    labels, clients = LABELS, 20
    partition = Dirichlet(clients=clients, alpha=1e-6).split(labels, None, 10, np.random.default_rng(0))
    counts = class_counts(partition, labels, 10)
    assert (np.count_nonzero(counts, axis=0) == 1).all()


def test_skew_falls_with_alpha():
    assert skew(0.05)[0] > skew(0.5)[0] + 0.1 > skew(5)[0] + 0.3


def test_the_minimum_size_is_kept():
    federation = Dirichlet(clients=20, alpha=0.3, min_size=30)
    assert federation.split(LABELS, None, 10, np.random.default_rng(0)).sizes.min() >= 30


def test_a_minimum_that_cannot_be_is_refused_before_loading():
    with pytest.raises(ConfigError, match=r"min_size=30 for 4 clients needs 120 examples, but there are 119; lower"):
        Dirichlet(clients=4, min_size=30).refuse(Facts(shape=(1,), classes=2, train_size=119))
    with pytest.raises(ConfigError, match="needs 120 examples"):
        Dirichlet(clients=4, min_size=30).split(LABELS[:119], None, 10, np.random.default_rng(0))


def test_a_minimum_that_is_not_reached_says_how_near_it_came():
    federation = Dirichlet(clients=20, alpha=0.5, min_size=250, retries=3)
    with pytest.raises(ConfigError, match=r"the best of 4 draws left its smallest client with \d+; raise alpha"):
        federation.split(LABELS, None, 10, np.random.default_rng(0))


@pytest.mark.parametrize("alpha", [0, -1, float("inf")])
def test_alpha_must_be_positive_and_finite(alpha):
    with pytest.raises(ConfigError, match="alpha must be a number in"):
        Dirichlet(clients=2, alpha=alpha)
