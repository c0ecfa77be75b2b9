import numpy as np

from fedexp.parts.federation.own_tests import assign_test_examples
from fedexp.parts.federation.partition import Partition


def test_the_test_examples_of_whoever_trains_on_a_subject_alone():
    """Client 0 has people 5 and 9, client 1 shares 9 with it and has 7; person 8 has only test examples."""
    partition = Partition(np.array([0, 2, 4]), np.array([0, 1, 2, 3]))
    train, test = np.array([5, 9, 9, 7]), np.array([7, 9, 5, 8, 5, 99, -3])
    found = assign_test_examples(partition, train, test)
    assert [found.shard(client).tolist() for client in range(2)] == [[2, 4], [0]]


def test_without_training_examples_nobody_has_any():
    nothing = Partition(np.array([0, 0]), np.zeros(0, dtype=np.int64))
    assert assign_test_examples(nothing, np.array([1, 2]), np.array([1])).sizes.tolist() == [0]
