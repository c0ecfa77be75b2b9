import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from skews import label_skew

from fedexp.parts.federation.shards import deal_in_turn, split_in_shards
from fedexp.parts.federation.statistics import class_counts


def test_each_client_holds_two_pieces_of_the_sorted_data():
    labels = np.array([1, 0, 3, 2, 1, 0, 3, 2])
    partition = split_in_shards(labels, 2, 2, np.random.default_rng(0))
    pieces = ({1, 5}, {0, 4}, {3, 7}, {2, 6})  # the classes 0, 1, 2, 3: one shard each
    for client in range(2):
        assert sum(piece <= set(partition.shard(client)) for piece in pieces) == 2


def test_the_setting_of_the_paper():
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), 600))
    partition = split_in_shards(labels, 100, 2, np.random.default_rng(0))
    counts = class_counts(partition, labels, 10)
    assert (partition.sizes == 60).all()
    assert (np.count_nonzero(counts, axis=1) <= 2).all()
    assert 0.8 <= label_skew(counts) <= 0.9


@given(examples=st.integers(1, 200), clients=st.integers(1, 30), shards=st.integers(1, 5))
def test_sizes_differ_by_at_most_one_example_a_shard(examples, clients, shards):
    sizes = split_in_shards(np.zeros(examples, dtype=np.int64), clients, shards, np.random.default_rng(0)).sizes
    assert sizes.max() - sizes.min() <= shards


def test_shards_in_turn_give_neighbouring_classes():
    """Four classes of three examples, six clients with two shards of one example: 0 and 1 or 2 and 3."""
    labels = np.array([3, 0, 1, 2] * 3)
    partition = deal_in_turn(labels, 6, 2, 4)
    assert [sorted(labels[shard].tolist()) for shard in map(partition.shard, range(6))] == [[0, 1], [2, 3]] * 3
    assert partition.shard(0).tolist() == [1, 2]
    assert partition.shard(2).tolist() == [5, 6]
