import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import jensenshannon
from skews import label_skew

from fedexp.parts.federation.iid import split_evenly
from fedexp.parts.federation.partition import Partition
from fedexp.parts.federation.statistics import class_counts, label_distances, size_gini, size_spread


def test_class_counts_by_hand():
    partition = Partition(np.array([0, 2, 2, 5]), np.array([0, 3, 1, 2, 4]))
    counts = class_counts(partition, np.array([2, 0, 0, 2, 1]), 3)
    assert counts.tolist() == [[0, 0, 2], [0, 0, 0], [2, 1, 0]]


def test_class_counts_of_many_clients_agree_with_a_loop():
    labels = np.random.default_rng(0).integers(0, 4, 150_000)
    partition = split_evenly(len(labels), 140_000, np.random.default_rng(1))
    counts = class_counts(partition, labels, 4)
    for client in (0, 65_535, 65_536, 131_072, 139_999):
        assert counts[client].tolist() == np.bincount(labels[partition.shard(client)], minlength=4).tolist()
    assert counts.sum(axis=0).tolist() == np.bincount(labels).tolist()


def test_label_skew_by_hand():
    assert label_skew(np.array([[5, 5], [10, 10], [0, 0]])) == 0
    assert label_skew(np.array([[5, 0], [0, 5]])) == pytest.approx(0.5)
    # all: 3/4 and 1/4; clients: 1 and 0, then 1/2 and 1/2: both at distance 1/4
    assert label_skew(np.array([[2, 0], [1, 1]])) == pytest.approx(0.25)


def test_two_classes_of_ten_have_a_skew_of_four_fifths():
    counts = np.kron(np.eye(5, dtype=int), np.array([[7, 7]]))
    assert label_skew(counts) == pytest.approx(0.8)


def test_distances_by_hand():
    """All: 3/4 and 1/4. Client 0 has (1, 0), client 1 (1/2, 1/2); client 2, three times as large, mirrors the whole."""
    found = label_distances(np.array([[2, 0], [1, 1], [9, 3], [0, 0]]))
    assert found["total_variation"] == pytest.approx({"mean": (1 / 4 + 1 / 4) / 3, "by_size": 1 / 16})
    alone, mixed = 1 - 3**0.5 / 2, 1 - (3**0.5 + 1) / 8**0.5  # 1 less the Bhattacharyya coefficients
    assert found["hellinger"]["mean"] == pytest.approx((alone**0.5 + mixed**0.5) / 3)
    assert found["hellinger"]["by_size"] == pytest.approx((alone**0.5 + mixed**0.5) / 8)


@given(counts=arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.integers(0, 30)))
def test_distances_agree_with_scipy(counts: np.ndarray):
    assume(counts.sum() > 0)
    everyone, clients = counts.sum(axis=0) / counts.sum(), counts[counts.sum(axis=1) > 0]
    each = [jensenshannon(own / own.sum(), everyone, base=2) for own in clients]
    found = label_distances(counts)["jensen_shannon"]
    assert found["mean"] == pytest.approx(np.nan_to_num(each).mean(), abs=1e-6)
    assert found["by_size"] == pytest.approx(np.average(np.nan_to_num(each), weights=clients.sum(axis=1)), abs=1e-6)


def test_clients_with_nothing_in_common_are_at_distance_one_but_for_their_own_share():
    found = label_distances(np.eye(1000, dtype=int))
    assert all(each["mean"] == pytest.approx(1, abs=0.04) for each in found.values())


def test_spread_by_hand():
    assert size_spread(np.array([2, 4, 4, 6])) == {"smallest": 2, "median": 4, "largest": 6, "variation": 2**0.5 / 4}
    assert size_spread(np.array([3, 3]))["variation"] == 0


def test_gini_by_hand():
    assert size_gini(np.array([4, 4, 4])) == 0
    assert size_gini(np.array([0, 0, 0, 8])) == pytest.approx(3 / 4)
    assert size_gini(np.array([1, 3])) == pytest.approx(1 / 4)
    assert size_gini(np.array([5])) == 0
    assert size_gini(np.array([0, 0])) == 0


@given(sizes=st.lists(st.integers(0, 100), min_size=1, max_size=30).filter(any))
def test_gini_is_the_mean_difference_over_twice_the_mean(sizes):
    values = np.array(sizes)
    slow = np.abs(values[:, None] - values).mean() / (2 * values.mean())
    assert size_gini(values) == pytest.approx(slow)
