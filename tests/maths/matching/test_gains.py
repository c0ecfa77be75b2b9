"""Gains: matrix products against the equations written out for one pair at a time."""

import math

import numpy as np
import pytest

from fedexp.maths.matching.atoms import GlobalAtoms, Group, Prior
from fedexp.maths.matching.gains import (
    Buffet,
    count_new_atoms,
    gains_of_existing,
    gains_of_new,
    volume_of_new,
    volumes_of_existing,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def some_matched(rng: np.random.Generator) -> tuple[GlobalAtoms, list[list[Group]]]:
    """Three global atoms of four coordinates, with the local atoms (as groups of one) that are in each."""
    members = [[Group(rng.normal(size=(1, 4)), rng.uniform(0.5, 3, 4)) for _ in range(count)] for count in (1, 3, 2)]
    matched = GlobalAtoms.empty(4)
    for number, atoms in enumerate(members):
        for group in atoms:
            matched = matched.with_group(group, np.array([number]))
    return matched, members


def slow_existing(members: list[Group], v: np.ndarray, q: np.ndarray, prior: Prior) -> float:
    gain = 0.0
    for p in range(len(v)):
        numerator = prior.mean[p] * prior.precision[p] + sum(g.precision[p] * g.atoms[0, p] for g in members)
        denominator = prior.precision[p] + sum(g.precision[p] for g in members)
        gain += (numerator + q[p] * v[p]) ** 2 / (denominator + q[p]) - numerator**2 / denominator
    return gain


def test_all_pairs_equal_one_pair_at_a_time(rng: np.random.Generator):
    matched, members = some_matched(rng)
    group, prior = (
        Group(rng.normal(size=(5, 4)), rng.uniform(0.5, 3, 4)),
        Prior(rng.normal(size=4), rng.random(4) + 0.2),
    )
    assert matched.popularity.tolist() == [1, 3, 2]
    existing, new = gains_of_existing(matched, group, prior), gains_of_new(group, prior)
    for row, v in enumerate(group.atoms):
        for column, atoms in enumerate(members):
            assert existing[row, column] == pytest.approx(slow_existing(atoms, v, group.precision, prior))
        assert new[row] == pytest.approx(slow_existing([], v, group.precision, prior))


def test_spahm_equals_its_own_formula(rng: np.random.Generator):
    """With equal precisions and the volumes added, PFNM's gain is SPAHM's F(S + v, m + 1) - F(S, m) and so on."""
    mean, var0, var = rng.normal(size=4), rng.random(4) + 0.5, rng.random(4) + 0.1
    prior, atoms = Prior(mean, 1 / var0), rng.normal(size=(5, 4))
    group, sums, counts = Group(atoms, 1 / var), rng.normal(size=(3, 4)), np.array([1, 4, 2])
    matched = GlobalAtoms(sums / var, counts[:, None] / var, counts)

    def f(s: np.ndarray, m: int) -> np.ndarray:
        return (var0 / var * s**2 + 2 * mean * s - m * mean**2) / (m * var0 + var)

    existing = gains_of_existing(matched, group, prior) + volumes_of_existing(matched, group, prior)
    new = gains_of_new(group, prior) + volume_of_new(group, prior)
    for row, v in enumerate(atoms):
        for column, (s, m) in enumerate(zip(sums, counts, strict=True)):
            slow = f(s + v, m + 1) - f(s, m) - np.log((m + 1) * var0 + var) + np.log(m * var0 + var)
            assert existing[row, column] == pytest.approx(slow.sum())
        alone = (var0 / var * v**2 + 2 * mean * v - mean**2) / (var0 + var) - np.log((var0 + var) / var)
        assert new[row] == pytest.approx(alone.sum())


def test_popularity_by_hand():
    assert Buffet(1.0, 2.0, 4).existing(np.array([1, 2, 3])) == pytest.approx(
        [2 * math.log(1 / 3), 0.0, 2 * math.log(3)]
    )
    assert Buffet(1.0, 1.0, 4).existing(np.array([3])) == pytest.approx([math.log(3)])
    assert Buffet(8.0, 2.0, 4).new(3) == pytest.approx([2 * math.log(2), 0.0, 2 * math.log(2 / 3)])


def test_popularity_counts_ten_at_most():
    gains = Buffet(1.0, 2.0, 50).existing(np.array([9, 10, 11, 49]))
    assert gains[0] < gains[1]
    assert gains[1:] == pytest.approx([2 * math.log(10 / 40)] * 3)


def test_places_for_new_atoms():
    assert count_new_atoms(100, 0) == 100
    assert count_new_atoms(100, 650) == 50
    assert count_new_atoms(100, 700) == count_new_atoms(100, 900) == 1
    assert count_new_atoms(800, 400) == 400, "every unit must find a place"
