"""Walks along permutations by hand; truncation; what is drawn."""

import numpy as np
import pytest
from games import evaluating, losing

from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.game.utilities import Utilities
from fedexp.maths.shapley.sampling import permutation_sampling
from fedexp.maths.shapley.sampling.permutation_sampling import guided_permutations, prefixes, walk


def table(utility: list[float]) -> Utilities:
    values = np.array(utility)
    players = len(utility).bit_length() - 1
    return Utilities(players, lambda members: values[(members << np.arange(players)).sum(axis=1)])


def test_marginals_by_hand_go_to_the_player_at_the_position():
    utilities = table([0, 1, 2, 5, 3, 4, 7, 10])
    marginal, truncated = walk(np.array([[2, 0, 1], [1, 2, 0]]), utilities, 0.0)
    # order 2, 0, 1 passes 3, 4, 10; order 1, 2, 0 passes 2, 7, 10
    assert marginal.tolist() == [[1.0, 6.0, 3.0], [3.0, 2.0, 5.0]]
    assert truncated == 0


def test_a_walk_near_the_full_value_stops_evaluating():
    utilities = table([0, 9.5, 0, 7, 0, 7, 7, 10])
    marginal, truncated = walk(np.array([[0, 1, 2], [1, 0, 2]]), utilities, 1.0)
    assert marginal[0].tolist() == [9.5, 0.0, 0.0]  # 9.5 is within 1 of 10
    assert marginal[1].tolist() == [7.0, 0.0, 3.0]
    assert truncated == pytest.approx(1 / 3)
    assert utilities.evaluated_count == 5  # nobody, all, {0}, {1}, {0, 1}


@pytest.mark.parametrize("players", [1, 2, 5])
def test_permutations_are_permutations(players: int):
    drawn = guided_permutations(players, np.random.default_rng(0))
    assert drawn.shape == (players, players)
    assert (np.sort(drawn, axis=1) == np.arange(players)).all()


def test_every_player_opens_one_guided_permutation_and_the_rest_is_random():
    rng = np.random.default_rng(0)
    seen = {tuple(row) for _ in range(60) for row in guided_permutations(3, rng)}
    assert guided_permutations(4, rng)[:, 0].tolist() == [0, 1, 2, 3]
    assert len(seen) == 6


def test_estimates_are_right_in_the_mean():
    utility, rng = losing(5, np.random.default_rng(0)), np.random.default_rng(1)
    utilities = Utilities(5, evaluating(utility))
    means = [walk(guided_permutations(5, rng), utilities, 0.0)[0].mean(axis=0) for _ in range(3000)]
    error = np.std(means, axis=0) / np.sqrt(len(means))
    assert (np.abs(np.mean(means, axis=0) - exact(utility)) < 4 * error + 1e-12).all()


def test_prefixes_by_hand():
    assert prefixes(np.array([[1, 0, 2]])).tolist() == [[False, True, False], [True, True, False], [True, True, True]]


class TestSweeps:
    """Batches, and what is evaluated ahead."""

    @staticmethod
    def batches(permutations: int, truncation: float) -> tuple[list[int], np.ndarray]:
        sizes: list[int] = []
        utility = losing(8, np.random.default_rng(0))

        def evaluate(members: np.ndarray) -> np.ndarray:
            sizes.append(len(members))
            return evaluating(utility)(members)

        sweeps = permutation_sampling.run_sweeps(
            Utilities(8, evaluate), permutations, None, truncation, np.random.default_rng(0)
        )
        *_, last = sweeps
        return sizes, last.marginal

    def test_a_sweep_without_truncation_is_one_batch(self):
        sizes, _ = self.batches(16, 0.0)
        assert len(sizes) == 3  # two sweeps, and what both walks begin with: nobody and all
        assert sum(sizes) < 8 * 16

    def test_evaluating_ahead_changes_nothing_but_the_batches(self, monkeypatch):
        few, ahead = self.batches(80, 1e-4)
        monkeypatch.setattr(permutation_sampling, "RARELY", -1.0)
        many, beside = self.batches(80, 1e-4)
        assert ahead.tobytes() == beside.tobytes()
        assert len(few) < len(many) / 2

    def test_what_was_evaluated_in_vain_does_not_count(self):
        utilities = Utilities(3, lambda members: members.sum(axis=1) * 1.0)
        utilities.prefetch(prefixes(guided_permutations(3, np.random.default_rng(0))))
        found = len(utilities.cache)
        assert utilities.evaluated_count == 0
        utilities(np.ones((1, 3), dtype=bool))
        assert (utilities.evaluated_count, len(utilities.cache)) == (1, found)
