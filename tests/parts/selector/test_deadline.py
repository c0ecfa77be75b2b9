"""The greedy that fills a round, against a slow one with two loops, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedexp.core.client_resources import Resources, arrivals
from fedexp.parts.selector.deadline import Dispersion, fill_round, increments, std_over_mean, variance_over_mean


def machines(update: list[float], upload: list[float], overhead: float = 0.0) -> Resources:
    return Resources(1 / np.array(upload), np.ones(len(update)), np.array(update), 1e6, overhead)


def slowly(resources: Resources, round_s: float, counts=None, dispersion: Dispersion | None = None) -> list[int]:
    """Every remaining candidate is scored, the best is tried, accepted or thrown away, until none is left."""
    left, chosen = list(range(len(resources.bandwidth))), []

    def distribution(who: list[int]) -> float:
        return max((resources.upload_s[k] for k in who), default=0.0)

    def elapsed(who: list[int]) -> float:
        theta = 0.0
        for k in who:
            theta = theta + resources.upload_s[k] + max(0.0, resources.update_s[k] - theta)
        return theta

    while left:
        scores = []
        for k in left:
            waiting = max(0.0, resources.update_s[k] - elapsed(chosen))
            increment = distribution([*chosen, k]) - distribution(chosen) + resources.upload_s[k] + waiting
            uneven = 1.0
            if counts is not None:
                assert dispersion is not None
                uneven = float(dispersion(counts[[*chosen, k]].sum(axis=0)[None])[0])
            scores.append((increment * uneven, increment, k))
        best = min(scores)[2]
        left.remove(best)
        if resources.overhead_s + distribution([*chosen, best]) + elapsed([*chosen, best]) < round_s:
            chosen.append(best)
    return chosen


CANDIDATES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 8), st.lists(st.integers(0, 5), min_size=3, max_size=3)),
    max_size=9,
)


@pytest.mark.law("selector=fedcs", "the choice is that of the greedy that scores all that are left after each step")
@given(CANDIDATES, st.integers(1, 60), st.sampled_from([None, variance_over_mean, std_over_mean]))
def test_equals_the_slow_one(candidates, round_s: int, dispersion: Dispersion | None):
    # powers of two in the upload times, so that both add without rounding
    update = [float(entry[0]) for entry in candidates]
    upload = [float(2 ** (entry[1] % 4)) for entry in candidates]
    counts = np.array([entry[2] for entry in candidates], dtype=np.int64).reshape(-1, 3)
    resources = machines(update, upload)
    found = fill_round(resources, float(round_s), counts, dispersion)
    assert found.tolist() == slowly(resources, float(round_s), counts if dispersion else None, dispersion)


@pytest.mark.law("selector=fedcs", "everybody that is chosen is done before the deadline")
@given(CANDIDATES, st.integers(1, 60))
def test_the_round_ends_before_its_deadline(candidates, round_s: int):
    resources = machines([float(entry[0]) for entry in candidates], [float(entry[1]) for entry in candidates])
    chosen = resources.where(fill_round(resources, float(round_s)))
    times = chosen.distribution_s + arrivals(chosen.update_s, chosen.upload_s)
    assert (times < round_s).all()


def test_by_hand():
    # trained after 4, 1 and 9 s; 2 s each to send. T_inc at first: 2+2+4, 2+2+1, 2+2+9
    resources = machines([4, 1, 9], [2, 2, 2])
    assert increments(resources, 0.0, 0.0).tolist() == [8.0, 5.0, 13.0]
    # client 1 is in at 3 (+2 s of distribution); then 0: waits until 4, is in at 6; then 2: until 9, in at 11
    assert fill_round(resources, 13.5).tolist() == [1, 0, 2]
    assert fill_round(resources, 13.0).tolist() == [1, 0]  # 2 + 11 < 13 is false: the limit is strict
    assert fill_round(resources, 5.0).tolist() == []


def test_a_rejected_candidate_does_not_end_the_loop():
    # 0 has the smallest product but does not fit; 1 does
    resources = machines([20, 3], [1, 1])
    counts = np.array([[1, 1], [2, 0]])
    assert fill_round(resources, 10.0, counts, variance_over_mean).tolist() == [1]


def test_ties_go_to_the_smaller_increment_then_to_the_smaller_position():
    even = np.array([[1, 1], [1, 1], [1, 1]])  # no unevenness: every product is 0
    assert fill_round(machines([5, 1, 1], [1, 1, 1]), 50.0, even, variance_over_mean).tolist() == [1, 2, 0]


def test_dispersion_by_hand():
    counts = np.array([[2, 4], [20, 40], [0, 0]])
    assert variance_over_mean(counts).tolist() == pytest.approx([1 / 3, 100 / 30, 0])  # not free of scale
    assert std_over_mean(counts).tolist() == pytest.approx([1 / 3, 1 / 3, 0])


def test_the_greedy_is_not_the_largest_possible_set():
    # the greedy takes the quick trainer first, which makes everybody wait for its slow link
    resources = machines([0, 6, 6, 6], [5, 2, 2, 2])
    assert len(fill_round(resources, 15.0)) == 2
    best = resources.where(np.array([1, 2, 3]))
    assert best.distribution_s + arrivals(best.update_s, best.upload_s)[-1] < 15.0


def test_a_theta_with_distribution_waits_less():
    # after 0 (T_d 3, Theta 3) the increments of 1 and 2 are 1 + max(0, 6 - 3) = 4 and 3 + max(0, 3 - 3) = 3; reckoned
    # from 3 + 3 candidate 1 would not wait at all: 1
    resources = machines([0, 6, 3], [3, 1, 3])
    assert fill_round(resources, 100.0).tolist() == [0, 2, 1]
    assert fill_round(resources, 100.0, counting_distribution=True).tolist() == [0, 1, 2]
