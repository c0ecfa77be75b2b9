"""Antithetic and stratified permutations: what they promise, that they are fair, and what a sweep asks in one batch."""

import numpy as np
import pytest
from games import evaluating, losing

from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.sampling.permutation_sampling import SWEEP_DESIGNS, SweepDesign, run_sweeps, sweep_rows
from fedexp.maths.shapley.sampling.permutations import (
    antithetic_permutations,
    guided_permutations,
    latin_square,
    prefixes,
    walk,
)


@pytest.mark.parametrize("players", [1, 2, 5, 8])
@pytest.mark.parametrize("draw", [antithetic_permutations, latin_square])
def test_they_are_permutations(draw, players: int):
    drawn = draw(players, np.random.default_rng(0))
    assert (np.sort(drawn, axis=1) == np.arange(players)).all()


def test_each_permutation_is_followed_by_its_reverse():
    drawn = antithetic_permutations(5, np.random.default_rng(0))
    assert drawn.shape == (6, 5)
    assert (drawn[::2] == drawn[1::2, ::-1]).all()


@pytest.mark.parametrize("players", [1, 2, 6, 9])
def test_every_player_is_once_at_every_position(players: int):
    drawn = latin_square(players, np.random.default_rng(1))
    assert (np.sort(drawn, axis=0) == np.arange(players)[:, None]).all()


def test_the_first_rows_spread_a_player_over_the_positions():
    place = np.sort(np.argsort(latin_square(12, np.random.default_rng(2))[:4], axis=1)[:, 0])
    gaps = np.diff([*place, place[0] + 12])
    assert gaps.min() >= 2


@pytest.mark.parametrize("way", ["antithetic", "stratified", "gtg"])
def test_estimates_are_right_in_the_mean(way: str):
    utility, rng = losing(5, np.random.default_rng(0)), np.random.default_rng(1)
    utilities = Utilities(5, evaluating(utility))
    means = [walk(SWEEP_DESIGNS[way].draw(5, rng), utilities, 0.0).mean(axis=0) for _ in range(3000)]
    error = np.std(means, axis=0) / np.sqrt(len(means))
    assert (np.abs(np.mean(means, axis=0) - exact(utility)) < 4 * error + 1e-12).all()


def test_prefixes_by_hand():
    assert prefixes(np.array([[1, 0, 2]])).tolist() == [[False, True, False], [True, True, False], [True, True, True]]


class TestSweeps:
    """Batches, bounds, and what is evaluated ahead."""

    @staticmethod
    def batches(
        utility: np.ndarray, way: SweepDesign, permutations: int, truncation: float
    ) -> tuple[list[int], np.ndarray]:
        sizes: list[int] = []

        def evaluate(members: np.ndarray) -> np.ndarray:
            sizes.append(len(members))
            return evaluating(utility)(members)

        *_, last = run_sweeps(Utilities(8, evaluate), way, permutations, None, truncation, np.random.default_rng(0))
        return sizes, last.marginal

    def test_a_sweep_without_truncation_is_one_batch(self):
        sizes, _ = self.batches(losing(8, np.random.default_rng(0)), SWEEP_DESIGNS["permutations"], 16, 0.0)
        assert len(sizes) == 3  # nobody and all, and two sweeps
        assert sum(sizes) < 8 * 16

    def test_evaluating_ahead_changes_nothing_but_the_batches(self, monkeypatch):
        utility = losing(8, np.random.default_rng(0))
        few, ahead = self.batches(utility, SWEEP_DESIGNS["gtg"], 80, 1e-4)
        monkeypatch.setattr("fedexp.maths.shapley.sampling.permutation_sampling.RARELY", -1.0)
        many, beside = self.batches(utility, SWEEP_DESIGNS["gtg"], 80, 1e-4)
        assert ahead.tobytes() == beside.tobytes()
        assert len(few) < len(many) / 2

    def test_what_was_evaluated_in_vain_does_not_count(self):
        utilities = Utilities(3, lambda members: members.sum(axis=1) * 1.0)
        utilities.prefetch(prefixes(guided_permutations(3, np.random.default_rng(0))))
        found = len(utilities.cache)
        assert utilities.evaluated_count == 0
        utilities(np.ones((1, 3), dtype=bool))
        assert (utilities.evaluated_count, len(utilities.cache)) == (1, found)

    @pytest.mark.parametrize("way", ["permutations", "antithetic", "stratified"])
    @pytest.mark.parametrize("players", [1, 2, 3, 12, 50, 100])
    def test_the_bound_holds(self, way: str, players: int):
        bound, utilities = 2 * players + 2, Utilities(players, lambda members: members.sum(axis=1) * 1.0)
        *_, last = run_sweeps(utilities, SWEEP_DESIGNS[way], 50 * players, bound, 0.0, np.random.default_rng(0))
        assert utilities.evaluated_count <= bound
        assert last.values == pytest.approx(np.ones(players))

    def test_several_sweeps_fit_where_coalitions_are_few(self):
        assert sweep_rows(SWEEP_DESIGNS["stratified"], 100, 2048) == 2
        assert sweep_rows(SWEEP_DESIGNS["antithetic"], 50, 2048) == 4
        assert sweep_rows(SWEEP_DESIGNS["permutations"], 10, 2048) == 10
        assert (
            sweep_rows(SWEEP_DESIGNS["gtg"], 100, 2048) == sweep_rows(SWEEP_DESIGNS["permutations"], 100, None) == 100
        )
