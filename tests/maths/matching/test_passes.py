"""Assignments against every assignment there is, and what a sweep does to atoms that nobody is left in."""

from itertools import permutations

import numpy as np
import pytest

from fedexp.maths.matching.atoms import GlobalAtoms, Group, Prior, combine_groups
from fedexp.maths.matching.gains import Buffet, count_new_atoms, gains_of_existing, gains_of_new
from fedexp.maths.matching.passes import Gain, assign, first_pass, match_given, sweep

PRIOR = Prior(np.zeros(2), np.ones(2))


def gain(matched: GlobalAtoms, group: Group) -> tuple[np.ndarray, np.ndarray]:
    return gains_of_existing(matched, group, PRIOR), gains_of_new(group, PRIOR)


def slow_table(matched: GlobalAtoms, group: Group, buffet: Buffet, cap: int = 10) -> list[list[float]]:
    """Every unit in every place, by loops over units, places and coordinates."""
    table = []
    for v in group.atoms:
        row = []
        for total, precision, popularity in zip(matched.total, matched.precision, matched.popularity, strict=True):
            fit = sum(
                (t + q * x) ** 2 / (1 + a + q) - t**2 / (1 + a)
                for t, a, q, x in zip(total, precision, group.precision, v, strict=True)
            )
            m = min(int(popularity), cap)
            row.append(fit + buffet.factor * np.log(m / (buffet.clients - m)))
        for number in range(1, len(group.atoms) + 1):
            fit = sum((q * x) ** 2 / (1 + q) for q, x in zip(group.precision, v, strict=True))
            row.append(fit - 2 * np.log(number) + 2 * np.log(buffet.mass / buffet.clients))
        table.append(row)
    return table


def best_by_trying_all(table: list[list[float]]) -> float:
    places = range(len(table[0]))
    return max(
        sum(table[row][column] for row, column in enumerate(chosen)) for chosen in permutations(places, len(table))
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_no_assignment_is_better(seed: int, factor: float):
    rng = np.random.default_rng(seed)
    units, atoms, clients = int(rng.integers(1, 4)), int(rng.integers(1, 4)), 5
    buffet = Buffet(float(rng.choice([1e-3, 1.0, 50.0])), factor, clients)
    precision = rng.uniform(0.5, 4, 2)
    matched = GlobalAtoms(rng.normal(size=(atoms, 2)), rng.uniform(0.5, 4, (atoms, 2)), rng.integers(1, clients, atoms))
    group = Group(2 * rng.normal(size=(units, 2)), precision)
    places = assign(matched, group, gain, buffet)
    assert len(set(places.tolist())) == units
    table = slow_table(matched, group, buffet)
    assert count_new_atoms(units, atoms) == units
    assert sum(table[row][place] for row, place in enumerate(places)) == pytest.approx(best_by_trying_all(table))


def test_new_atoms_are_numbered_in_the_order_of_the_units():
    matched = GlobalAtoms.empty(2).with_group(Group(np.array([[5.0, 5.0]]), np.full(2, 100.0)), np.array([0]))
    group = Group(np.array([[-3.0, 0.0], [5.0, 5.0], [0.1, 0.0], [9.0, -9.0]]), np.full(2, 100.0))
    assert assign(matched, group, gain, Buffet(1.0, 2.0, 2)).tolist() == [1, 0, 2, 3]


def test_popularity_decides_between_equal_fits():
    """Two atoms at the same distance: the one that more clients have."""
    matched = GlobalAtoms(np.array([[10.0, 0.0], [10.0, 0.0]]), np.full((2, 2), 10.0), np.array([1, 3]))
    assert assign(matched, Group(np.array([[1.0, 0.0]]), np.full(2, 5.0)), gain, Buffet(1e-6, 2.0, 5)).tolist() == [1]


def test_the_factor_of_popularity_can_turn_a_choice():
    """The nearer atom has one client of six, the other five: F = 1 takes the nearer, F = 2 the popular one."""
    fits = np.array([[0.0, -4.0]])
    flat: Gain = lambda matched, group: (fits, np.array([-100.0]))  # noqa: E731
    matched = GlobalAtoms(np.zeros((2, 2)), np.ones((2, 2)), np.array([1, 5]))
    group = Group(np.zeros((1, 2)), np.ones(2))
    # log(5 / 1) - log(1 / 5) = 3.22
    assert assign(matched, group, flat, Buffet(1.0, 1.0, 6)).tolist() == [0]
    assert assign(matched, group, flat, Buffet(1.0, 2.0, 6)).tolist() == [1]


def groups_around(centers: np.ndarray, members: list[list[int]], rng: np.random.Generator) -> list[Group]:
    return [
        Group(centers[own] + 0.01 * rng.normal(size=(len(own), centers.shape[1])), np.full(centers.shape[1], 1e4))
        for own in members
    ]


CENTERS = np.array([[5.0, 0.0], [-5.0, 0.0], [0.0, 5.0], [0.0, -5.0]])


def test_the_largest_client_comes_first():
    groups = groups_around(CENTERS, [[0, 1], [3, 2, 1], [1, 0, 2]], np.random.default_rng(0))
    assigned = first_pass(groups, gain, Buffet(1.0, 2.0, 3))
    assert [places.tolist() for places in assigned] == [[3, 2], [0, 1, 2], [2, 3, 1]]


def test_a_sweep_deletes_what_nobody_is_left_in():
    """Client 0's unit begins apart from its twin at client 1; matched again it joins, and its old atom goes."""
    groups = groups_around(CENTERS, [[0, 1], [1, 0], [2]], np.random.default_rng(0))
    apart = (np.array([0, 1]), np.array([1, 2]), np.array([3]))
    assigned = sweep(groups, apart, gain, Buffet(1.0, 2.0, 3), np.array([0, 1, 2]))
    assert [places.tolist() for places in assigned] == [[1, 0], [0, 1], [2]]
    assert combine_groups(groups, assigned).popularity.tolist() == [2, 2, 1]


def test_sweeps_join_what_the_first_pass_took_apart():
    """Twelve units around four centers: the first pass makes five atoms of them."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(4, 2))
    groups = [
        Group(np.round(centers[rng.permutation(4)[:3]] + 0.6 * rng.normal(size=(3, 2)), 1), np.full(2, 2.0))
        for _ in range(4)
    ]
    prior, draws = Prior(np.zeros(2), np.full(2, 0.1)), np.random.default_rng(0)
    found = [
        len(match_given(groups, prior, Buffet(1.0, 2.0, 4), sweeps, rng).atoms)
        for sweeps, rng in ((0, np.random.default_rng(0)), (3, draws))
    ]
    assert found == [5, 4]
    orders = np.random.default_rng(0)
    assert len({tuple(orders.permutation(4)) for _ in range(3)}) == 3, "each sweep takes an order of its own"
    assert draws.permutation(4).tolist() == orders.permutation(4).tolist()


def test_values_are_not_written_in_place():
    matched = GlobalAtoms.empty(2).with_group(Group(CENTERS, np.ones(2)), np.arange(4))
    kept = matched.total.copy()
    matched.with_group(Group(CENTERS, np.ones(2)), np.arange(4))
    matched.without_group(Group(CENTERS, np.ones(2)), np.arange(4))
    assert np.array_equal(matched.total, kept)
    assert matched.popularity.tolist() == [1, 1, 1, 1]
