"""Which rounds are recomputed, followed with a pencil."""

from hypothesis import given
from hypothesis import strategies as st

from fedexp.verify.sampling import Segment, choose, count_computed, largest_count


def test_round_1_the_last_and_those_behind_a_state():
    assert choose(30, [10, 20, 30], 4, 0) == [Segment(0, (1,)), Segment(10, (11,)), Segment(20, (21, 30))]


def test_as_many_as_fit():
    """From the beginning: rounds 1 and 2 cost two, a third one three more at least, all of them thirty."""
    assert largest_count(30, [], 0.1, 0) == 1
    assert largest_count(30, [], 29, 0) < 30
    assert largest_count(30, [], 30, 0) == 30
    for rounds in range(3, 40):
        count = largest_count(30, [10, 20], rounds, 1)
        assert count_computed(choose(30, [10, 20], count, 1)) <= rounds


def test_more_states_than_rounds_asked_for_are_drawn_among():
    found = {choose(100, range(10, 100, 10), 3, seed)[1].start for seed in range(20)}
    assert len(found) > 3


def test_what_is_missing_is_drawn_near_a_state():
    for seed in range(20):
        (only,) = choose(1000, [1000], 3, seed)
        assert only.start == 0
        assert only.sample[0] == 1
        assert only.last <= 10


def test_all_rounds_where_there_are_no_more():
    assert choose(4, [2], 9, 0) == [Segment(0, (1, 2)), Segment(2, (3, 4))]


@given(
    finished=st.integers(1, 60),
    starts=st.sets(st.integers(1, 60)),
    count=st.integers(1, 70),
    seed=st.integers(0, 5),
)
def test_as_many_as_asked_each_from_the_nearest_state(finished: int, starts: set[int], count: int, seed: int):
    stretches = choose(finished, starts, count, seed)
    rounds = [number for stretch in stretches for number in stretch.sample]
    assert rounds == sorted(set(rounds))
    assert len(rounds) == min(count, finished)
    assert rounds[0] == 1
    for stretch in stretches:
        for number in stretch.sample:
            assert stretch.start == max(start for start in {0, *starts} if start < number)
