import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedexp.core.client_resources import Resources, arrivals
from fedexp.core.random_streams import client_draws, stream

SECONDS = st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 10)), max_size=12)


def test_uploads_queue_behind_the_slowest_trainer_by_hand():
    # trained at 5, sent until 7; trained long ago, sent until 10; trained at 12, sent until 16
    assert arrivals(np.array([5.0, 1.0, 12.0]), np.array([2.0, 3.0, 4.0])).tolist() == [7.0, 10.0, 16.0]
    assert arrivals(np.zeros(0), np.zeros(0)).tolist() == []


@given(SECONDS)
def test_arrivals_equal_the_published_recursion(times: list[tuple[float, float]]):
    elapsed, expected = 0.0, []
    for training, sending in times:
        elapsed = elapsed + sending + max(0.0, training - elapsed)
        expected.append(elapsed)
    update, upload = (np.array([time[side] for time in times]) for side in (0, 1))
    assert arrivals(update, upload) == pytest.approx(expected)


def test_seconds_by_hand():
    some = Resources(np.array([1.4, 0.7]), np.array([50.0, 10.0]), np.array([300.0, 300.0]), 2.8e6, 1.0)
    assert some.update_s.tolist() == [6.0, 30.0]
    assert some.upload_s == pytest.approx([2.0, 4.0])
    assert some.distribution_s == pytest.approx(4.0)
    assert some.where(np.array([0])).distribution_s == pytest.approx(2.0)
    assert some.where(np.zeros(2, bool)).distribution_s == 0.0


@pytest.mark.parametrize("owner", [[3], [0, 1, 2], [9_999, 5, 17], list(range(0, 10_000, 7))])
def test_a_clients_draws_are_its_own_whoever_else_is_asked_for(owner: list[int]):
    everyone = stream(3, "fleet", 1).random((10_000, 4))
    assert np.array_equal(client_draws(3, "fleet", 1, owner=np.array(owner), clients=10_000), everyone[owner])
