"""Assigns test examples to clients, where the dataset names the subject of each example."""

import numpy as np

from fedexp.parts.federation.owners import partition_by_owner
from fedexp.parts.federation.partition import Partition


def assign_test_examples(partition: Partition, train: np.ndarray, test: np.ndarray) -> Partition:
    """The test examples of each client: those of subjects whose training examples only this client holds.

    `train [S]` and `test [T]` are the subjects of the training and of the test examples. Test examples of other
    subjects are nobody's.
    """
    owner = np.repeat(np.arange(partition.clients), partition.sizes)
    subjects, number = np.unique(train[partition.indices], return_inverse=True)
    if not len(subjects):
        return partition_by_owner(np.full(len(test), partition.clients), partition.clients)
    first, last = np.full(len(subjects), partition.clients), np.full(len(subjects), -1)
    np.minimum.at(first, number, owner)
    np.maximum.at(last, number, owner)
    position = np.searchsorted(subjects, test).clip(max=len(subjects) - 1)
    has_one_owner = (subjects[position] == test) & (first == last)[position]
    return partition_by_owner(np.where(has_one_owner, first[position], partition.clients), partition.clients)
