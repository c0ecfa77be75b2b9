"""Which rounds are replayed, followed with a pencil."""

from hypothesis import given
from hypothesis import strategies as st

from fedexp.verify.choosing import Stretch, choose, computed, fitting


def test_round_1_the_last_and_those_behind_a_state():
    assert choose(30, [10, 20, 30], 4, 0) == [Stretch(0, (1,)), Stretch(10, (11,)), Stretch(20, (21, 30))]


def test_as_many_as_fit():
    """From the beginning: rounds 1 and 2 cost two, a third one three more at least, all of them thirty."""
    assert fitting(30, [], 0.1, 0) == 1
    assert fitting(30, [], 29, 0) < 30
    assert fitting(30, [], 30, 0) == 30
    for rounds in range(3, 40):
        count = fitting(30, [10, 20], rounds, 1)
        assert computed(choose(30, [10, 20], count, 1)) <= rounds


def test_more_states_than_rounds_asked_for_are_drawn_among():
    found = {choose(100, range(10, 100, 10), 3, seed)[1].start for seed in range(20)}
    assert len(found) > 3


def test_what_is_missing_is_drawn_near_a_state():
    for seed in range(20):
        (only,) = choose(1000, [1000], 3, seed)
        assert only.start == 0
        assert only.asked[0] == 1
        assert only.last <= 10


def test_all_rounds_where_there_are_no_more():
    assert choose(4, [2], 9, 0) == [Stretch(0, (1, 2)), Stretch(2, (3, 4))]


@given(
    finished=st.integers(1, 60),
    starts=st.sets(st.integers(1, 60)),
    count=st.integers(1, 70),
    seed=st.integers(0, 5),
)
def test_as_many_as_asked_each_from_the_nearest_state(finished: int, starts: set[int], count: int, seed: int):
    stretches = choose(finished, starts, count, seed)
    rounds = [number for stretch in stretches for number in stretch.asked]
    assert rounds == sorted(set(rounds))
    assert len(rounds) == min(count, finished)
    assert rounds[0] == 1
    for stretch in stretches:
        for number in stretch.asked:
            assert stretch.start == max(start for start in {0, *starts} if start < number)
