"""When a step begins and who may be asked in it, with windows written down by the test."""

import numpy as np
import pytest

from fedexp.core.errors import RunError
from fedexp.simulation.presence import Presence, begin_step, presence_memory

WINDOWS = [[(0, 4), (20, 30)], [(2, 6)], [(9, 12), (25, np.inf)]]


class Counted:
    """A timeline of the windows above that counts of whom it was asked."""

    def __init__(self, windows: list = WINDOWS) -> None:
        self.windows, self.asked = windows, 0

    def __call__(self, owner: np.ndarray, now_s: float) -> tuple[np.ndarray, np.ndarray]:
        self.asked += len(owner)
        present, until_s = [], []
        for client in owner.tolist():
            here = [end for begin, end in self.windows[client] if begin <= now_s < end]
            later = [begin for begin, _ in self.windows[client] if begin > now_s]
            present.append(bool(here))
            until_s.append(here[0] if here else min(later, default=np.inf))
        return np.array(present), np.array(until_s, dtype=float)


def begin(presence: Presence, now_s: float, in_flight: tuple[int, ...] = ()) -> tuple:
    start = begin_step(presence, now_s, np.array(in_flight, dtype=np.int64), None)
    return start.now_s, start.waited_s, start.busy.tolist()


def test_whoever_is_away_or_in_flight_is_busy():
    presence = Presence(Counted(), 3)
    assert begin(presence, 0.0) == (0.0, 0.0, [1, 2])
    assert begin(presence, 3.0) == (3.0, 0.0, [2])
    assert begin(presence, 3.0, (0,)) == (3.0, 0.0, [0, 2])
    assert presence.count == 2
    assert presence.stays_s(np.array([1, 0]), 3.0).tolist() == [3.0, 1.0]


def test_the_clock_moves_to_the_next_arrival_if_nobody_is_there():
    presence = Presence(Counted(), 3)
    assert begin(presence, 7.0) == (9.0, 2.0, [0, 1])
    assert begin(presence, 12.0) == (20.0, 8.0, [1, 2])
    assert presence_memory(presence, 8.0) == {"availability": {"columns": {"present": 1, "waited_s": 8.0}}}


def test_while_somebody_trains_the_server_does_not_wait():
    assert begin(Presence(Counted(), 3), 7.0, (1,)) == (7.0, 0.0, [0, 1, 2])


def test_only_those_are_asked_of_whom_something_may_have_changed():
    timeline = Counted()
    presence = Presence(timeline, 3)
    for now_s, asked in ((0.0, 3), (1.0, 3), (2.0, 4), (5.0, 5), (9.0, 7), (1.0, 10)):  # back in time, all
        presence.move(now_s)
        assert timeline.asked == asked


def test_nobody_comes_any_more():
    with pytest.raises(RunError, match=r"no client is there any more after 12 simulated seconds"):
        begin(Presence(Counted([[(0, 1)], [(3, 4)]]), 2), 12.0)


def test_where_all_are_always_there_nothing_is_asked():
    start = begin_step(None, 5.0, np.array([3]), 2)
    assert (start.now_s, start.waited_s, start.busy.tolist(), start.capacity) == (5.0, 0.0, [3], 2)
    assert presence_memory(None, 0.0) == {}
