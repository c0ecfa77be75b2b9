"""Centered clipping against a loop, by hand, and over rounds."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import close, equal_shares, normal, wild

from fedexp.core.values import Layout, Uploads, Weights
from fedexp.maths.rows import distances_to
from fedexp.parts.aggregator.centered_clipping import CenteredClipping, move_centre


def slow(rows: torch.Tensor, centre: list[float], radius: float) -> list[float]:
    result = list(centre)
    for row in rows.double().tolist():
        gap = [value - middle for value, middle in zip(row, centre, strict=True)]
        length = math.hypot(*gap)
        for column, value in enumerate(gap):
            result[column] += value * (min(1, radius / length) if length else 1) / len(rows)
    return result


def uploads_of(delta: torch.Tensor) -> Uploads:
    owner = np.arange(len(delta))
    return Uploads(owner, owner * 0, owner * 0 + 1, owner * 0 + 1.0, delta, owner * 1.0, owner * 1.0)


def played(rule: CenteredClipping, *rounds: list[float]) -> tuple[list[float], dict]:
    """Where a model of one entry is after rounds in which the clients sent these numbers; the last report."""
    weights, memory = Weights(torch.zeros(1), Layout(("w",), ((1,),), 1)), {}
    path = []
    for sent in rounds:
        before = weights.flat
        weights, memory = rule.combine(weights, uploads_of(torch.tensor(sent).float().view(-1, 1)), memory, None)  # pyright: ignore[reportArgumentType]
        path.append((weights.flat - before).item())
    return path, memory


def test_rounds_by_hand():
    # from 0: 1, 2 and a clipped 2 make 5/3. From 5/3 the distances of 2, 3 and 100 are 1/3, 4/3 and cut to 2
    path, memory = played(CenteredClipping(radius=2), [1, 2, 100], [2, 3, 100])
    assert path == pytest.approx([5 / 3, 5 / 3 + (1 / 3 + 4 / 3 + 2) / 3])
    assert memory["columns"] == {"radius": 2, "clipped": 1}
    path, memory = played(CenteredClipping(radius=2, start="zero"), [1, 2, 100], [2, 3, 100])
    assert path == pytest.approx([5 / 3, (2 + 2 + 2) / 3])
    assert memory.keys() == {"columns"}


def test_iterations_and_the_median_as_radius():
    # from 0 the distances 1, 2, 9 are cut to 2: 5/3; from there 2/3, 1/3 and 22/3 are cut to 2/3
    path, memory = played(CenteredClipping(iterations=2), [1, 2, 9])
    assert path == pytest.approx([5 / 3 + (-2 / 3 + 1 / 3 + 2 / 3) / 3])
    assert memory["columns"] == {"radius": pytest.approx(2 / 3), "clipped": 1}


@pytest.mark.law("aggregator=centered_clipping", "a round of nobody leaves the model and the centre that is remembered")
def test_a_round_of_nobody_changes_nothing():
    path, memory = played(CenteredClipping(radius=2), [1, 3], [])
    assert path == [1.5, 0]
    assert memory["centre"].tolist() == [1.5]
    assert memory["columns"] == {"radius": None, "clipped": 0}


@pytest.mark.law(
    "aggregator=centered_clipping",
    "the centre moves by the mean of what leads from it to the rows, each cut to the radius",
)
@given(rows=wild(mixed=False), radius=st.sampled_from([1e-30, 1e-3, 1.0, 1e30]), seed=st.integers(0, 99))
def test_equals_the_loop(rows: torch.Tensor, radius: float, seed: int):
    centre = normal(seed, rows.shape[1]).double() * float(rows.abs().max())
    distance = distances_to(rows, centre)
    found = move_centre(rows, equal_shares(len(rows)), centre, distance, radius)
    assert close(found, slow(rows, centre.tolist(), radius), torch.cat([rows * 1e5, centre[None] * 1e5]))
