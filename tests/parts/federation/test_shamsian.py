from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skews import label_skew

from fedexp.core.errors import ConfigError
from fedexp.core.part import build
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation.shamsian import Shamsian, apportion, draw_classes, shamsian_counts
from fedexp.parts.federation.statistics import class_counts


def draw_one_by_one(clients, held, classes, rng):
    """The rule as it is told: each pick is at random among the classes with the most free slots."""
    free = [clients * held] * classes
    rows = []
    for _ in range(clients):
        mine: list[int] = []
        for _ in range(held):
            slots = {kind: free[kind] for kind in range(classes) if kind not in mine}
            most = [kind for kind, left in slots.items() if left == max(slots.values())]
            mine.append(most[rng.integers(len(most))])
            free[mine[-1]] -= 1
        rows.append(mine)
    return np.array(rows)


@settings(deadline=None)
@given(data=st.data(), clients=st.integers(1, 60), classes=st.integers(1, 12))
def test_classes_are_distinct_and_evenly_held(data, clients, classes):
    held = data.draw(st.integers(1, classes))
    rows = draw_classes(clients, held, classes, np.random.default_rng(data.draw(st.integers(0, 99))))
    assert rows.shape == (clients, held)
    assert all(len(set(row)) == held for row in rows.tolist())
    holders = np.bincount(rows.ravel(), minlength=classes)
    assert holders.max() - holders.min() <= 1


@pytest.mark.parametrize(("clients", "held", "classes"), [(3, 2, 3), (2, 3, 4), (2, 2, 3)])
def test_blocks_have_the_distribution_of_the_one_by_one_rule(clients, held, classes):
    rng, runs = np.random.default_rng(0), 6000
    fast = Counter(str(draw_classes(clients, held, classes, rng).tolist()) for _ in range(runs))
    slow = Counter(str(draw_one_by_one(clients, held, classes, rng).tolist()) for _ in range(runs))
    assert fast.keys() == slow.keys()
    difference = sum((fast[key] - slow[key]) ** 2 / (fast[key] + slow[key]) for key in slow)
    freedom = len(slow) - 1
    assert difference < freedom + 4 * np.sqrt(2 * freedom)  # chi-squared of two samples


def test_apportion_by_hand():
    assert apportion(10, np.array([0.5, 0.6, 0.4])).tolist() == [3, 4, 3]  # 3.33, 4, 2.67
    assert apportion(1, np.array([1.0, 1.0, 1.0])).tolist() == [1, 0, 0]  # ties: smallest client
    assert apportion(0, np.array([0.4, 0.6])).tolist() == [0, 0]


@given(total=st.integers(0, 10_000), weights=st.lists(st.floats(0.4, 0.6), min_size=1, max_size=50))
def test_apportion_gives_everything_and_stays_within_one(total, weights):
    shares = np.array(weights)
    counts = apportion(total, shares)
    assert counts.sum() == total
    assert (np.abs(counts - total * shares / shares.sum()) < 1 + 1e-9).all()


def test_only_holders_receive():
    held = np.array([[0, 1], [2, 0], [1, 2]])
    counts = shamsian_counts(np.array([8, 5, 7]), held, np.ones((3, 2)))
    assert counts.tolist() == [[4, 4, 0], [3, 0, 2], [0, 4, 3]]
    counts = shamsian_counts(np.array([8, 5, 7]), held, np.ones((3, 2)), "dropped")
    assert counts.tolist() == [[4, 4, 0], [2, 0, 2], [0, 3, 3]]


def test_leftovers_may_be_dropped():
    labels = np.arange(6000) % 10
    partition = Shamsian(clients=7, leftovers="dropped").split(labels, None, 10, np.random.default_rng(0))
    counts = class_counts(partition, labels, 10)
    assert 6000 - 10 * 7 < counts.sum() < 6000
    assert len(np.unique(partition.indices)) == counts.sum()


def test_two_classes_of_ten_are_far_from_the_whole():
    labels = np.arange(60_000) % 10
    partition = Shamsian(clients=100).split(labels, None, 10, np.random.default_rng(0))
    counts = class_counts(partition, labels, 10)
    assert (np.count_nonzero(counts, axis=1) == 2).all()
    assert (np.count_nonzero(counts, axis=0) == 20).all()
    assert label_skew(counts) == pytest.approx(0.8, abs=1e-3)
    assert counts[counts > 0].min() >= 300 * 0.4 / 0.6 - 1
    assert counts.max() <= 300 * 0.6 / 0.4 + 1


def test_all_classes_is_the_mild_noise_of_the_study():
    labels = np.arange(60_000) % 10
    partition = Shamsian(clients=300, classes_per_client="all").split(labels, None, 10, np.random.default_rng(0))
    assert partition.sizes.mean() == 200
    assert 170 < partition.sizes.min() < 190 < 210 < partition.sizes.max() < 230
    assert label_skew(class_counts(partition, labels, 10)) == pytest.approx(0.048, abs=0.003)


def test_impossible_numbers_of_classes_are_refused_before_loading():
    facts = Facts(shape=(1,), classes=10, train_size=100)
    with pytest.raises(ConfigError, match="at most the 10 classes of the dataset, got 11"):
        Shamsian(clients=5, classes_per_client=11).refuse(facts)
    with pytest.raises(ConfigError, match=r"4 clients with federation.classes_per_client=2 hold at most 8 of 10"):
        Shamsian(clients=4).refuse(facts)
    Shamsian(clients=5).refuse(facts)
    Shamsian(clients=1, classes_per_client="all").refuse(facts)


def test_wrong_values_are_refused():
    node = {"_target_": "fedexp.parts.federation.shamsian.Shamsian", "clients": 3, "classes_per_client": "most"}
    with pytest.raises(ConfigError, match=r"federation.classes_per_client must be an integer >= 1 or one of all"):
        build(node, "federation")
    with pytest.raises(ConfigError, match=r"low must be at most high=0.3, got 0.4"):
        Shamsian(clients=3, high=0.3)
