"""The adjusted Rand index of small groupings."""

import numpy as np
import pytest

from fedexp.parts.clustering.agreement import adjusted_rand


def test_names_of_groups_do_not_matter():
    assert adjusted_rand(np.array([0, 0, 1, 2]), np.array([3, 3, 1, 2])) == 1.0


def test_by_hand():
    """Pairs together in both 1, in the known 2, in the found 3, of all 6: (1 - 1) / (2.5 - 1)."""
    assert adjusted_rand(np.array([0, 0, 1, 1]), np.array([1, 1, 1, 2])) == pytest.approx(0.0)


def test_where_nothing_is_known():
    assert adjusted_rand(None, np.array([1, 2])) is None
    assert adjusted_rand(np.zeros(0, np.int64), np.zeros(0, np.int64)) is None
    assert adjusted_rand(np.array([-1, -1]), np.array([1, 2])) is None


def test_clients_of_no_group_are_left_out():
    assert adjusted_rand(np.array([0, -1, 1]), np.array([1, 1, 2])) == 1.0
