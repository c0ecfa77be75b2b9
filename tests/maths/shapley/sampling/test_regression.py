"""The weighted fit against exact values, by hand, and its errors against the spread of many fits."""

import numpy as np
import pytest
from games import FAMILIES, losing, unrelated, utilities

from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.sampling.kernel import kernel_pairs
from fedexp.maths.shapley.sampling.leverage import leverage_pairs
from fedexp.maths.shapley.sampling.regression import fit


@pytest.mark.parametrize("draw", [kernel_pairs, leverage_pairs])
@pytest.mark.parametrize("players", range(1, 9))
def test_all_pairs_give_the_exact_values_and_no_error(draw, players: int):
    utility = unrelated(players, np.random.default_rng(players))
    values, errors = fit(draw(players, 2**players, np.random.default_rng(0)), utilities(utility))
    assert values == pytest.approx(exact(utility))
    assert errors is not None
    assert errors.tolist() == [0.0] * players


def test_two_players_by_hand():
    # alone 1 and 2, together 5: half of 5, and half of the difference between the two
    values, _ = fit(leverage_pairs(2, 1, np.random.default_rng(0)), utilities(np.array([0.0, 1.0, 2.0, 5.0])))
    assert values == pytest.approx([2.0, 3.0])


def test_too_few_pairs_tell_no_error():
    strata = leverage_pairs(8, 8, np.random.default_rng(0))
    assert fit(strata, utilities(unrelated(8, np.random.default_rng(0))))[1] is None


@pytest.mark.parametrize("draw", [kernel_pairs, leverage_pairs])
@pytest.mark.parametrize("family", [losing, unrelated])
def test_errors_are_the_spread_of_many_fits_and_the_bias_is_small(draw, family):
    utility = family(8, np.random.default_rng(3))
    known, found = utilities(utility), []
    for seed in range(300):
        found.append(fit(draw(8, 60, np.random.default_rng(seed)), known))
    values, errors = (np.array(column) for column in zip(*found, strict=True))
    spread = values.std(axis=0)
    assert np.sqrt((errors**2).mean(axis=0)) == pytest.approx(spread, rel=0.25)
    assert (np.abs(values.mean(axis=0) - exact(utility)) < 0.5 * spread).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_sums_are_efficient_whatever_the_sample(family: str):
    utility = FAMILIES[family](7, np.random.default_rng(0))
    values, _ = fit(kernel_pairs(7, 15, np.random.default_rng(0)), utilities(utility))
    assert values.sum() == pytest.approx(utility[-1] - utility[0])
