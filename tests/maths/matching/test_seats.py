"""Who holds which global units, followed by hand."""

import numpy as np

from fedexp.maths.matching.seats import MISSING, UnitAssignment, fill_missing, trace_units


def test_what_is_gone_is_replaced_by_the_most_popular():
    popularity = np.array([1, 3, 2, 3])
    held = np.array([[0, 2], [MISSING, 1], [MISSING, MISSING]])
    assert fill_missing(held, popularity).tolist() == [[0, 2], [3, 1], [1, 3]]


def test_units_are_followed_through_those_who_were_given_them():
    """Old unit 2 went to 5, but more of 0 did; old 3 was given to nobody."""
    given = np.array([[0, 1], [0, 1], [1, 2]])
    matched = np.array([[5, 4], [5, 4], [4, 5]])
    assert trace_units(np.array([[0, 1], [2, 3], [1, MISSING]]), given, matched).tolist() == [
        [5, 4],
        [MISSING, MISSING],
        [4, MISSING],
    ]


def test_rounds():
    seats = UnitAssignment.load({}, (3,))
    first = seats.units(np.array([4, 2]))[0]
    assert first.tolist() == [[0, 1, 2], [0, 1, 2]]
    matched = np.array([[0, 1, 2], [3, 1, 4]])
    seats = seats.after(np.array([2, 4]), (first,), (matched,), (np.array([1, 2, 1, 1, 1]),))
    assert seats.units(np.array([4, 2, 9]))[0].tolist() == [[3, 1, 4], [0, 1, 2], [1, 0, 2]]
    later = np.array([[1, 0, 2], [1, 3, 2]])  # client 4 and the new client 9, which began as the popular 1, 0, 2
    seats = seats.after(np.array([4, 9]), (np.array([[3, 1, 4], [1, 0, 2]]),), (later,), (np.array([1, 2, 2, 1]),))
    assert seats.owner.tolist() == [2, 4, 9]
    # client 2 held 0, 1, 2: 0 is now 3, 2 is now 2, and 1 is 0 or 1, of which 3 was the other's only place
    assert seats.held_units[0].tolist() == [[3, 0, 2], [1, 0, 2], [1, 3, 2]]
    restored = UnitAssignment.load(seats.save(), (4,))
    assert all(np.array_equal(a, b) for a, b in zip(restored.held_units, seats.held_units, strict=True))
