"""Whether the top is settled: by hand, against simulation, and what the mean of several rounds is worth."""

import numpy as np
import pytest
from scipy.special import ndtr

from fedexp.maths.shapley.ranking.ranking_confidence import is_settled, mean_variance, top_confidence


def test_certain_scores_are_settled_even_if_tied():
    assert top_confidence(np.array([1.0, 1.0, 0.0]), np.zeros(3), 1) == 1.0


def test_who_takes_everybody_is_sure():
    assert top_confidence(np.array([1.0, 2.0]), np.ones(2), 2) == 1.0


def test_an_unknown_error_is_an_unknown_confidence():
    assert top_confidence(np.array([1.0, 2.0]), np.array([np.nan, 0.0]), 1) is None


def test_two_by_hand():
    # the threshold half way between 0 and 2 leaves each one error of 0.5 away by two errors
    assert top_confidence(np.array([0.0, 2.0]), np.array([0.5, 0.5]), 1) == pytest.approx(1 - 2 * ndtr(-2))


def test_the_threshold_leans_towards_what_is_certain():
    # the threshold can stand on the certain client, so only the other's error counts
    assert top_confidence(np.array([0.0, 2.0]), np.array([0.0, 1.0]), 1) == pytest.approx(1 - ndtr(-2))


def test_a_client_that_comes_first_anyhow_settles_its_place():
    assert top_confidence(np.array([np.inf, 1.0, 0.0]), np.array([0.0, 1.0, 1.0]), 1) == 1.0


def test_the_confidence_is_kept():
    rng, true = np.random.default_rng(0), np.linspace(0, 1, 12)
    errors = np.full(12, 0.08)
    claimed, wrong = [], []
    for _ in range(2000):
        scores = true + errors * rng.normal(size=12)
        best = set(np.argsort(-scores)[:5])
        claimed.append(top_confidence(scores, errors, 5))
        wrong.append(best != set(range(7, 12)))
    claimed, wrong = np.array(claimed), np.array(wrong)
    assert (claimed >= 0.8).sum() > 50
    assert wrong[claimed >= 0.8].mean() < 0.2
    assert np.corrcoef(claimed, wrong)[0, 1] < 0


@pytest.mark.parametrize(("looks", "settled"), [(1, True), (4, False)])
def test_several_looks_ask_for_more(looks: int, settled: bool):
    assert is_settled(0.97, 0.95, looks) is settled
    assert not is_settled(None, 0.5)


def test_the_variance_of_a_mean_by_hand():
    # the mean of two estimates with errors 3 and 4 has the variance (9 + 16) / 4
    first = mean_variance(np.zeros(1), np.ones(1, dtype=np.int64), np.array([3.0]))
    assert first.tolist() == [9.0]
    assert mean_variance(first, np.array([2]), np.array([4.0])).tolist() == [6.25]
