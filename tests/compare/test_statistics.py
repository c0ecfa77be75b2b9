"""Numbers by hand, and a study of the verdicts: how often they cry wolf, and what they find."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from fedexp.compare import statistics
from fedexp.compare.page import p_text
from fedexp.compare.statistics import add_verdicts, compare, holm, sign_flip_p, wilcoxon_p
from fedexp.maths.significance import pairs_needed

SEEDS = 10


def test_differences_by_hand():
    found = compare([0.9, 0.8, 0.7], [0.8, 0.8, 0.75], higher_is_better=True)
    assert (found.a, found.b) == (pytest.approx(0.8), pytest.approx(2.35 / 3))
    assert found.difference == pytest.approx(0.05 / 3)
    assert (found.wins, found.ties, found.losses) == (1, 1, 1)
    assert found.low is not None
    assert found.high is not None
    half = 4.302653 * np.std([0.1, 0, -0.05], ddof=1) / np.sqrt(3)  # Student's t with 2 degrees of freedom
    assert (found.low, found.high) == (pytest.approx(0.05 / 3 - half), pytest.approx(0.05 / 3 + half))
    assert compare([0.9, 0.8, 0.7], [0.8, 0.8, 0.75], higher_is_better=False).wins == 1
    assert compare([0.9, 0.8], [0.8, 0.7], higher_is_better=False).losses == 2


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.02]) == pytest.approx([0.02])


def test_the_p_of_three_equal_signs_is_two_of_eight():
    differences = np.array([1.0, 2.0, 4.0])
    assert sign_flip_p(differences) == pytest.approx(0.25)
    assert wilcoxon_p(differences) == pytest.approx(0.25)


def test_tied_differences_are_tested_exactly():
    differences = np.array([1.0, 1.0, -1.0, 2.0, 3.0, 3.0, 0.0])
    library: Any = stats  # whose annotations say less than its pages
    found = library.wilcoxon(differences, method=library.PermutationMethod(n_resamples=np.inf))
    assert wilcoxon_p(differences) == pytest.approx(found.pvalue)


def test_differences_that_are_equal_but_for_rounding_are_ties():
    a, b = [0.8, 0.7, 0.6, 0.9, 0.3, 0.6], [0.7, 0.6, 0.5, 0.6, 0.3 + 1e-16, 0.7]
    assert len({*np.abs(np.subtract(a, b))}) > 3  # as floats have them
    result = compare(a, b, higher_is_better=True)
    assert (result.wins, result.ties, result.losses) == (4, 1, 1)
    assert result.p_wilcoxon == wilcoxon_p(np.array([1.0, 1.0, 1.0, 3.0, 0.0, -1.0]))
    large = compare([1e10 + 1, 1e10 + 2], [1e10, 1e10], higher_is_better=True)
    assert large.difference == 1.5
    tiny = compare([8e-300, 7e-300], [7e-300, 6e-300], higher_is_better=True)
    assert tiny.difference is not None
    assert tiny.difference < 1e-299


def test_a_p_is_never_printed_as_nothing():
    assert [p_text(p) for p in (0.2, 0.001, 0.0009, 1e-9)] == ["0.200", "0.001", "9e-04", "1e-09"]


def test_no_difference_at_all_has_p_one():
    zeros, one = np.zeros(4), np.array([0.0, 3.0, 0.0])
    assert [sign_flip_p(zeros), wilcoxon_p(zeros), sign_flip_p(one), wilcoxon_p(one)] == [1.0] * 4
    (found,) = add_verdicts([compare([1.0, 2.0], [1.0, 2.0], higher_is_better=True)])
    assert found.verdict == "identical"


def test_who_both_never_got_there_is_not_called_identical():
    (found,) = add_verdicts([compare([None] * 6, [None] * 6, higher_is_better=True)])
    assert found.verdict == "not resolved"


def test_who_never_got_there_is_worse_than_everybody_and_no_number_is_invented():
    found = compare([5, None, 3, None], [None, 4, 6, None], higher_is_better=False)
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)
    assert (found.only_a, found.only_b, found.neither) == (1, 1, 1)
    assert (found.a, found.b, found.difference) == (3, 6, -3)
    assert (found.low, found.p_mean) == (None, None)
    a, b = np.array([5, np.nan, 3, np.nan]), np.array([np.nan, 4, 6, np.nan])
    assert statistics.censored_differences(a, b, higher_is_better=False).tolist() == [-4, 4, -3, 0]


def test_censored_values_are_judged_by_their_ranks():
    (found,) = add_verdicts([compare([9] * 8, [None] * 8, higher_is_better=False)])
    assert found.difference is None
    assert found.p_wilcoxon == pytest.approx(2 / 2**8)
    assert found.verdict == "A better"


def test_the_ranks_say_who_is_ahead_not_the_count():
    few_big_losses = compare([None] * 3 + [1, 1, 1, 1], [1, 1, 1, 2, 2, 2, 2], higher_is_better=False)
    assert (few_big_losses.wins, few_big_losses.losses) == (4, 3)
    assert not few_big_losses.for_a


def test_less_loss_is_better():
    losses = [float(loss) for loss in range(8)]
    less = [loss - 1 for loss in losses]
    assert add_verdicts([compare(less, losses, higher_is_better=False)])[0].verdict == "A better"
    assert add_verdicts([compare(less, losses, higher_is_better=True)])[0].verdict == "B better"


@pytest.mark.parametrize(("family", "pairs"), [(1, 6), (5, 8), (20, 10)])
def test_the_fewest_pairs_that_can_show_anything(family, pairs):
    assert pairs_needed(family) == pairs
    assert family * 2 / 2**pairs <= 0.05 < family * 2 / 2 ** (pairs - 1)


def test_few_pairs_get_no_verdict():
    (found,) = add_verdicts([compare([0.9] * 5, [0.1, 0.2, 0.3, 0.4, 0.5], higher_is_better=True)])
    assert found.p_mean == pytest.approx(2 / 2**5)
    assert found.verdict == "too few pairs"
    assert found.resolvable is None  # so few show nothing


def runs_of(luck: np.ndarray) -> list[list[float | None]]:
    """The five quantities of runs that are as good as `luck` (unit: the noise): accuracies, areas, RoA, ToA."""
    reached = np.round(20 - 3 * luck)
    rounds = [None if value > 24 else float(value) for value in reached]
    seconds = [None if value is None else 1.7 * value for value in rounds]
    return [list(0.9 + 0.01 * luck), list(25 + 0.3 * luck), list(9 - 0.2 * luck), rounds, seconds]


def verdicts(rng: np.random.Generator, shift: float, shared: float) -> list[str]:
    """All five of A and B: `shared` is the correlation that the same seed gives, `shift` what A is better by."""
    seed, a, b = rng.standard_normal((3, SEEDS))
    one, other = (np.sqrt(shared) * seed + np.sqrt(1 - shared) * own for own in (a, b))
    sides = zip(runs_of(one + shift), runs_of(other), (True, True, False, False, False), strict=True)
    return [found.verdict for found in add_verdicts([compare(x, y, higher_is_better=more) for x, y, more in sides])]


def test_two_selectors_that_differ_in_name_only_are_not_told_apart():
    rng = np.random.default_rng(1)
    alike = [set(verdicts(rng, shift=0.0, shared=0.5)) == {"not resolved"} for _ in range(40)]
    assert sum(alike) >= 38


@pytest.mark.parametrize("pairs", [3, 5, 8, 10])
def test_the_interval_of_few_pairs_covers_what_it_says(pairs):
    rng = np.random.default_rng(pairs)
    bounds = np.array([statistics.interval(one) for one in rng.standard_normal((1000, pairs))], dtype=float)
    assert 0.935 <= np.mean((bounds[:, 0] <= 0) & (bounds[:, 1] >= 0)) <= 0.965


@pytest.mark.parametrize(("pairs", "family"), [(6, 1), (8, 1), (7, 3), (8, 3), (8, 5), (9, 5), (14, 1)])
def test_the_resolvable_difference_is_found_in_four_of_five_cases(pairs, family):
    rng, shift = np.random.default_rng(pairs), statistics.resolvable(1.0, pairs, family)
    p = [sign_flip_p(row) for row in rng.standard_normal((400, pairs)) + shift]
    assert 0.74 <= np.mean(np.array(p) <= 0.05 / family) <= 0.86


def test_with_the_fewest_pairs_all_signs_must_agree():
    assert statistics.resolvable(2.0, 6, 1) == pytest.approx(2 * stats.norm.ppf(0.8 ** (1 / 6)), rel=0.03)


def test_what_was_not_found_is_not_called_equal():
    (found,) = add_verdicts(
        [compare([0.9, 0.8, 0.7, 0.9, 0.8, 0.7], [0.8, 0.9, 0.8, 0.7, 0.8, 0.9], higher_is_better=True)]
    )
    assert found.verdict == "not resolved"
    assert found.resolvable is not None
    assert found.resolvable > 0.1


def test_one_quantity_by_itself_cries_wolf_in_one_of_twenty():
    rng = np.random.default_rng(2)
    alarms = [sign_flip_p(rng.standard_normal(SEEDS)) <= 0.05 for _ in range(500)]
    assert 0.03 <= np.mean(alarms) <= 0.07


@pytest.mark.parametrize("draw", range(3))
def test_a_planted_difference_of_two_standard_errors_is_found(draw):
    """The mean of 100 paired differences is exactly two of its standard errors from 0, compared by one quantity.

    No calibrated two-sided test finds it with fewer than 62 seeds: Student's t needs 2.09 of them with 20.
    """
    seeds = 100
    noise = np.random.default_rng(draw).standard_normal(seeds)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    standard_error = 1 / np.sqrt(seeds)
    other = np.random.default_rng(draw + 50).standard_normal(seeds)
    (found,) = add_verdicts(
        [compare((other + noise + 2 * standard_error).tolist(), other.tolist(), higher_is_better=True)]
    )
    assert found.verdict == "A better"
    assert found.low is not None
    assert found.low > 0


def test_two_standard_errors_of_a_method_are_found_because_seeds_are_paired():
    """Those of a method's own mean over 10 seeds; the seed explains 95 % of the variance, so pairs differ by less."""
    rng = np.random.default_rng(3)
    found = ["A better" in verdicts(rng, shift=2 / np.sqrt(SEEDS), shared=0.95) for _ in range(20)]
    assert sum(found) >= 19


def test_a_true_difference_of_two_standard_errors_is_found_every_second_time():
    """What luck adds to it, or takes away: no test at 5 % does much better, and the page promises no more."""
    rng = np.random.default_rng(4)
    shift = 2 / np.sqrt(SEEDS)
    found = [sign_flip_p(rng.standard_normal(SEEDS) + shift) <= 0.05 for _ in range(300)]
    assert 0.35 <= np.mean(found) <= 0.55
