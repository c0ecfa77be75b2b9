import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedexp.parts.selector.ranking import highest, lowest, weighted_draw

VALUES = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0, np.inf, -np.inf]), max_size=12).map(np.array)


def test_ties_go_to_the_smallest_position_and_nothing_known_comes_last():
    values = np.array([3.0, 1.0, np.nan, 1.0, 2.0, 1.0])
    assert lowest(values, 2).tolist() == [1, 3]
    assert lowest(values, 5).tolist() == [0, 1, 3, 4, 5]
    assert highest(values, 2).tolist() == [0, 4]
    assert highest(values, 6).tolist() == [0, 1, 2, 3, 4, 5]
    assert lowest(values, 0).tolist() == []


@given(VALUES, st.integers(0, 14))
def test_equals_a_stable_sort(values: np.ndarray, count: int):
    assert lowest(values, count).tolist() == sorted(np.argsort(values, kind="stable")[:count].tolist())


def test_draws_follow_sequentially_renormalised_weights():
    # weights 1, 2, 3: the pair {0, 1} comes with 1/6 * 2/5 + 2/6 * 1/4 = 0.15
    rng, weight = np.random.default_rng(0), np.log([1.0, 2.0, 3.0])
    seen = [tuple(weighted_draw(weight, 2, rng)) for _ in range(20_000)]
    assert seen.count((0, 1)) / 20_000 == pytest.approx(0.15, abs=0.01)
    assert seen.count((0, 2)) / 20_000 == pytest.approx(1 / 6 * 3 / 5 + 3 / 6 * 1 / 3, abs=0.01)


def test_what_has_no_weight_is_never_drawn():
    log_weight = np.array([-np.inf, 0.0, np.nan, -900.0])
    assert weighted_draw(log_weight, 4, np.random.default_rng(0)).tolist() == [1, 3]
    assert weighted_draw(log_weight, 1, np.random.default_rng(0)).tolist() == [1]
