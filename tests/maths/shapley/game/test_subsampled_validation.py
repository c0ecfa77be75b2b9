"""Utilities on a part of the examples: what is evaluated where, that both games add up, how near values come."""

import numpy as np
import pytest

from fedexp.maths.shapley.estimate import Estimate, Shapley
from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.game.subsampled_validation import make_fidelities
from fedexp.maths.shapley.game.utilities import all_coalitions
from fedexp.maths.shapley.surrogate.smooth import mixture_weights

PLAYERS, EXAMPLES = 8, 5000
SHARE = np.linspace(1, 2, PLAYERS)


class Round:
    """Logistic losses of averaged linear models; counts how often each example is met by each coalition."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.models = np.concatenate([np.zeros((1, 5)), rng.normal(0.5, 1, size=(PLAYERS, 5))])
        self.x = rng.normal(size=(EXAMPLES, 5)) + 0.5
        self.met: dict[bytes, np.ndarray] = {}

    def __call__(self, members: np.ndarray, places: range) -> np.ndarray:
        for row in members:
            self.met.setdefault(row.tobytes(), np.zeros(EXAMPLES, dtype=int))[places.start : places.stop] += 1
        weight = mixture_weights(members, SHARE)
        nobody = ~weight.any(axis=1, keepdims=True)
        logits = np.concatenate([nobody, weight], axis=1) @ self.models @ self.x[places.start : places.stop].T
        return -np.logaddexp(0, -logits).mean(axis=1)

    @property
    def true(self) -> np.ndarray:
        return exact(Round.__call__(self, all_coalitions(PLAYERS), range(EXAMPLES)))


def estimate(utilities: Round, **keys) -> Estimate:
    rng = np.random.default_rng(0)
    return Shapley(**keys).estimate(PLAYERS, utilities, rng, share=SHARE, examples=EXAMPLES)


def test_each_coalition_meets_each_example_at_most_once_and_few_meet_all():
    played = Round()
    found = estimate(played, stop="budget", coalitions=80, part=0.4)
    assert len(played.met) == found.coalitions == 80
    assert max(met.max() for met in played.met.values()) == 1
    seen = np.array([met.sum() for met in played.met.values()])
    assert (seen == EXAMPLES).sum() == 3 * PLAYERS
    assert (seen == 0.4 * EXAMPLES).sum() == 80 - 3 * PLAYERS


def test_the_games_add_up_to_the_utility_on_all_examples():
    played, members = Round(), all_coalitions(PLAYERS)
    sight = make_fidelities(PLAYERS, played, EXAMPLES, 0.4)
    total = sum(game(members) for game, _ in sight.games(members))
    assert total == pytest.approx(played(members, range(EXAMPLES)))


def test_values_from_a_part_come_as_near_as_their_errors_say():
    wrong = []
    for seed in range(8):
        found, true = estimate(played := Round(seed), stop="budget", coalitions=80), played.true
        assert found.errors is not None
        assert found.values.sum() == pytest.approx(true.sum()), "they share out the gain on all examples"
        assert np.abs(found.values - true).max() < 0.05 * np.ptp(true)
        wrong.append((found.values - true) / found.errors)
    assert 0.85 <= np.mean(np.abs(wrong) <= 1.96) <= 1


@pytest.mark.parametrize(
    "keys", [{"part": 1.0}, {"method": "exact"}, {"method": "gtg", "truncation": 0}, {"coalitions": 256}]
)
def test_without_a_part_every_coalition_meets_all_examples(keys):
    played = Round()
    estimate(played, **keys)
    assert {int(met.sum()) for met in played.met.values()} == {EXAMPLES}


def test_few_examples_are_looked_at_all():
    played, rng = Round(), np.random.default_rng(0)
    Shapley().estimate(PLAYERS, played, rng, share=SHARE, examples=1000)
    assert {int(met.sum()) for met in played.met.values()} == {1000}
