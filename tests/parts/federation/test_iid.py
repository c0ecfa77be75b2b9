import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedexp.core.errors import ConfigError
from fedexp.parts.federation.iid import IID, split_evenly


@given(examples=st.integers(0, 300), clients=st.integers(1, 50))
def test_sizes_differ_by_at_most_one(examples, clients):
    sizes = split_evenly(examples, clients, np.random.default_rng(0)).sizes
    assert sizes.max() - sizes.min() <= 1
    assert len(sizes) == clients


def test_ten_over_four():
    assert split_evenly(10, 4, np.random.default_rng(0)).sizes.tolist() == [3, 3, 2, 2]


def test_more_clients_than_examples_leaves_some_empty():
    assert split_evenly(2, 4, np.random.default_rng(0)).sizes.tolist() == [1, 1, 0, 0]


def test_the_examples_are_shuffled():
    first = split_evenly(10_000, 10, np.random.default_rng(0)).shard(0)
    assert abs(first.mean() - 5000) < 5 * 2887 / np.sqrt(1000)


def test_a_million_clients_are_two_arrays():
    partition = split_evenly(1_000_000, 1_000_000, np.random.default_rng(0))
    assert (partition.sizes == 1).all()


def test_no_clients_is_refused():
    with pytest.raises(ConfigError, match="clients must be an integer >= 1, got 0"):
        IID(clients=0)
