import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skews import label_skew

from fedexp.parts.federation.dirichlet_clients import DirichletClients, draw_class_counts, mixture_counts
from fedexp.parts.federation.iid import IID
from fedexp.parts.federation.statistics import class_counts

LABELS = np.arange(5000) % 10


def counts_of(alpha: float, clients: int = 100) -> np.ndarray:
    partition = DirichletClients(clients=clients, alpha=alpha).split(LABELS, None, 10, np.random.default_rng(0))
    return class_counts(partition, LABELS, 10)


def test_the_setting_of_the_paper_has_equal_sizes():
    assert (counts_of(0.1).sum(axis=1) == 50).all()
    assert counts_of(0.1, 3).sum(axis=1).tolist() == [1667, 1667, 1666]


def test_a_class_that_runs_out_leaves_its_share_to_the_others():
    rng = np.random.default_rng(0)
    assert draw_class_counts(6, np.array([1.0, 0.0]), np.array([9, 9]), rng).tolist() == [6, 0]
    assert draw_class_counts(6, np.array([1.0, 1e-9]), np.array([4, 9]), rng).tolist() == [4, 2]
    nothing_wanted_is_left = draw_class_counts(6, np.array([1.0, 0.0, 0.0]), np.array([2, 3, 1]), rng)
    assert nothing_wanted_is_left.tolist() == [2, 3, 1]


def test_examples_are_drawn_one_by_one_without_replacement():
    """Two draws from (2/3, 1/3) where the first class has one example: it is taken unless both draws want the other."""
    rng, mixture, left = np.random.default_rng(1), np.array([2 / 3, 1 / 3]), np.array([1, 5])
    first = [draw_class_counts(2, mixture, left, rng)[0] for _ in range(20_000)]
    assert np.mean(first) == pytest.approx(1 - 1 / 9, abs=0.01)


def test_the_limits_of_alpha():
    sample = class_counts(IID(clients=100).split(LABELS, None, 10, np.random.default_rng(0)), LABELS, 10)
    assert label_skew(counts_of(1e8)) == pytest.approx(label_skew(sample), abs=0.02)
    one_class = counts_of(1e-9)[:50].max(axis=1)  # while there is enough of each
    assert np.mean(one_class == 50) > 0.9
    assert label_skew(counts_of(0.1)) > label_skew(counts_of(10.0)) + 0.2


def test_the_first_client_has_the_moments_of_the_mixture():
    """Dir(alpha p) with p = (3/4, 1/4), alpha = 3: mean p, variance p (1 - p) / (alpha + 1)."""
    totals, rng = np.array([3_000_000, 1_000_000]), np.random.default_rng(0)
    share = [mixture_counts(totals, 400, 3.0, rng)[0, :50] / 10_000 for _ in range(40)]
    assert np.mean(share) == pytest.approx(0.75, abs=0.02)
    assert np.var(share) == pytest.approx(3 / 16 / 4, rel=0.12)


@given(totals=st.lists(st.integers(0, 60), min_size=1, max_size=6), clients=st.integers(1, 30), seed=st.integers(0, 99))
def test_every_example_is_taken_once(totals: list[int], clients: int, seed: int):
    counts = mixture_counts(np.array(totals), clients, 0.05, np.random.default_rng(seed))
    assert counts.sum(axis=1).tolist() == totals
    assert np.ptp(counts.sum(axis=0)) <= 1
