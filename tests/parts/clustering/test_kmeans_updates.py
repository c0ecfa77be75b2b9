"""Groups of the first updates."""

from typing import Any

import numpy as np
import pytest
import torch

from fedexp.parts.clustering.kmeans_updates import group_by_kmeans

ROWS = torch.tensor([[0.0, 0.0], [9.0, 9.0], [0.0, 1.0], [9.0, 8.0], [-5.0, 5.0]])


def test_groups_are_numbered_by_their_first_member():
    label, centres = group_by_kmeans(ROWS, 3, seed=1)
    assert label.tolist() == [0, 1, 0, 1, 2]
    assert centres.tolist() == [[0.0, 0.5], [9.0, 8.5], [-5.0, 5.0]]


@pytest.mark.law("clustering=kmeans_updates", "equal updates are never divided")
@pytest.mark.filterwarnings("error")
def test_equal_rows_are_never_divided():
    label, centres = group_by_kmeans(ROWS[[0, 0, 1, 0]], 3, seed=1)
    assert label.tolist() == [0, 0, 1, 0]
    assert len(centres) == 2


@pytest.mark.law("clustering=kmeans_updates", "three groups of clients are found from their first updates")
@pytest.mark.parametrize("seed", range(5))
def test_three_groups_are_found(live: Any, seed: int):
    _, states, lines = live("clustering=kmeans_updates", f"seed={seed}", "rounds=1")
    assert lines[-1]["clustering.agreement"] == 1.0
    assert len(states[-1].models) == 4


def test_a_later_client_goes_to_the_nearest_centre_and_the_centres_stay(live: Any):
    words = ("clustering=kmeans_updates", "clustering.arrivals=[1:2,2:1]", "rounds=3")
    _, states, lines = live(*words)
    assert [line["clustering.waiting"] for line in lines] == [2, 1, 0]
    assert lines[-1]["clustering.agreement"] == 1.0
    first, *_, last = (state.memory["clustering"]["references"] for state in states)
    assert torch.equal(first, last)
    assert np.array(first.shape).tolist() == [3, len(states[0].models[0].flat)]
