"""Standard errors of independent units by hand: one stratum, several, few units, rare contributions."""

import numpy as np
import pytest

from fedexp.maths.shapley.sampling.standard_error import NORMAL, PRIOR, moderate_variances, standard_errors, widening


@pytest.mark.parametrize(("units", "strata"), [(1, 1), (3, 1), (1, 8)])
def test_few_units_tell_nothing(units: int, strata: int):
    assert standard_errors(np.ones((units, strata, 3))) is None


def test_units_that_agree_have_no_error():
    found = standard_errors(np.ones((5, 2, 3)))
    assert found is not None
    assert found.tolist() == [0.0] * 3


def test_one_player_by_hand():
    # 1, 2, 3, 4: variance 5/3, of the mean 5/12; Student's 97.5 % quantile with 3 degrees of freedom is 3.182
    found = standard_errors(np.array([1.0, 2.0, 3.0, 4.0]).reshape(4, 1, 1))
    assert found == pytest.approx([np.sqrt(5 / 12) * 3.18245 / 1.95996], rel=1e-5)


def test_strata_by_hand():
    # two strata of one player: variances 2 and 8, two units each: (2 + 8) / 2 / 4
    units = np.array([[[0.0], [0.0]], [[2.0], [4.0]]])
    freedom = 5**2 / (1**2 + 4**2)
    assert standard_errors(units) == pytest.approx([np.sqrt(10 / 8) * widening(np.array(freedom))])


def test_variances_are_drawn_to_the_mean_of_the_players():
    assert moderate_variances(np.array([[0.0, 2.0]]), PRIOR).tolist() == [[0.5, 1.5]]
    assert moderate_variances(np.array([[0.0, 2.0]]), 10**9)[0] == pytest.approx([0, 2], abs=1e-6)


def test_a_contribution_that_no_unit_met_has_an_error_too():
    rare = np.zeros((10, 1, 2))
    rare[0, 0, 0] = 1.0
    found = standard_errors(rare)
    assert found is not None
    assert found[1] > 0.5 * found[0]


def test_the_widening_is_students():
    assert widening(np.array([1.0, 10.0])) * NORMAL == pytest.approx([12.7062, 2.22814], rel=1e-5)
    assert widening(np.array(1e9)) == pytest.approx(1.0)
