"""Pairs of coalitions by size: all of them, distinct ones, and how the two regression estimators share a budget."""

import math

import numpy as np
import pytest

from fedexp.maths.shapley.game.utilities import all_coalitions
from fedexp.maths.shapley.sampling.kernel import kernel_pairs
from fedexp.maths.shapley.sampling.leverage import allocation, leverage_pairs
from fedexp.maths.shapley.sampling.pairs import count_pairs, distinct_pairs, first_share, kernel_weight, random_pairs


@pytest.mark.parametrize("players", range(2, 9))
def test_all_pairs_are_all_coalitions_but_nobody_and_all(players: int):
    rng = np.random.default_rng(0)
    sizes = range(1, players // 2 + 1)
    pairs = np.concatenate([distinct_pairs(players, size, count_pairs(players, size), rng) for size in sizes])
    both = {tuple(row) for row in np.concatenate([pairs, ~pairs])}
    assert len(both) == 2 * len(pairs) == 2**players - 2


@pytest.mark.parametrize("size", [1, 3, 10])
def test_distinct_pairs_are_distinct_of_their_size_and_fair(size: int):
    pairs = distinct_pairs(20, size, min(200, count_pairs(20, size)), np.random.default_rng(0))
    assert len({row.tobytes() for row in pairs}) == len(pairs)
    assert (pairs.sum(axis=1) == size).all()
    assert size < 10 or pairs[:, 0].all()
    assert np.abs(pairs[:, 1:].mean(axis=0) - size / 20).max() < 0.15


def test_random_pairs_of_half_size_hold_the_first_player():
    pairs = random_pairs(6, np.array([1, 3, 3, 2, 3]), np.random.default_rng(0))
    assert pairs.sum(axis=1).tolist() == [1, 3, 3, 2, 3]
    assert pairs[[1, 2, 4], 0].all()


@pytest.mark.parametrize("players", [2, 5, 6])
def test_the_weights_of_the_sizes_are_those_of_the_kernel(players: int):
    kernel = [0.0] * (players // 2 + 1)
    for row in all_coalitions(players):
        size = int(row.sum())
        if 0 < size < players:
            kernel[min(size, players - size)] += 1 / (math.comb(players, size) * size * (players - size))
    assert [kernel_weight(players, size) for size in range(1, players // 2 + 1)] == pytest.approx(kernel[1:])


@pytest.mark.parametrize("players", [4, 5, 7])
def test_leverage_scores_of_the_regression_are_one_over_the_binomial(players: int):
    # Musco & Witter 2024, lemma 3.2, by brute force
    members = all_coalitions(players)[1:-1]
    size = members.sum(axis=1)
    binomial = np.array([math.comb(players, int(one)) for one in size])
    design = (members - size[:, None] / players) / np.sqrt(binomial * size * (players - size))[:, None]
    leverage = ((design @ np.linalg.pinv(design.T @ design, rcond=1e-9)) * design).sum(axis=1)
    assert leverage == pytest.approx(1 / binomial)


def test_leverage_shares_a_budget_equally_among_the_sizes_by_hand():
    # 10 players: 10, 45, 120, 210 and 126 pairs; of half size a pair holds two coalitions of one size
    assert allocation(10, 36).tolist() == [8, 8, 8, 8, 4]
    assert allocation(10, 45).tolist() == [10, 10, 10, 10, 5]
    assert allocation(10, 55).tolist() == [10, 13, 13, 13, 6]
    assert allocation(10, 511).tolist() == [10, 45, 120, 210, 126]
    assert allocation(10, 10**6).tolist() == [10, 45, 120, 210, 126]
    assert allocation(1, 5).tolist() == []


@pytest.mark.parametrize("players", [2, 3, 7, 30, 100])
@pytest.mark.parametrize("draw", [kernel_pairs, leverage_pairs])
def test_the_budget_is_kept_and_the_strata_weigh_what_they_stand_for(draw, players: int):
    budget = max(players, 40)
    strata = draw(players, budget, np.random.default_rng(0))
    assert sum(len(one.members) for one in strata) == min(budget, 2 ** (players - 1) - 1)
    whole = sum(kernel_weight(players, size) for size in range(1, players // 2 + 1))
    shown = sum(one.weight for one in strata)
    assert shown == pytest.approx(whole) or budget < players


def test_kernel_enumerates_the_smallest_sizes_and_draws_the_others_by_weight():
    strata = kernel_pairs(10, 200, np.random.default_rng(0))
    assert [(len(one.members), one.population) for one in strata] == [(10, 10), (45, 45), (145, np.inf)]
    sizes = kernel_pairs(10, 470, np.random.default_rng(0))[-1].members.sum(axis=1)
    assert set(sizes) == {4, 5}
    assert (sizes == 5).mean() == pytest.approx((1 / 25) / (1 / 25 + 2 / 24), abs=0.06)


def test_the_first_share_is_a_sample_of_the_same_kind():
    strata = leverage_pairs(10, 100, np.random.default_rng(0))
    half = first_share(strata, 0.5)
    assert half[0] is strata[0]  # all of size 1
    assert [len(one.members) for one in half[1:]] == [math.ceil(len(one.members) / 2) for one in strata[1:]]
    assert [one.weight for one in half] == [one.weight for one in strata]


def test_pairs_of_more_players_than_a_float_can_count_them_of():
    """One pair of each of 549 sizes, and none of the middle one, for its half; two are left for the smallest sizes."""
    assert allocation(1100, 551).tolist() == [2, 2, *[1] * 547, 0]
