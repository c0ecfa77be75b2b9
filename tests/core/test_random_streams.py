"""Named streams: equal names, equal draws; other names, other draws; a client's draws whoever else is asked for."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedexp.core.random_streams import client_draws, indexed_draws, stream, streams_by_round

NAMES = st.lists(st.one_of(st.integers(-5, 10**9), st.text(max_size=5)), max_size=3).map(tuple)


def test_the_numbers_are_written_in_stone():
    """Every published figure hangs on these: if they move, all results do."""
    assert stream(0).random(3).round(6).tolist() == [0.148976, 0.524466, 0.757702]
    assert stream(7, 3, "batches", 12).random(3).round(6).tolist() == [0.532774, 0.496918, 0.609642]
    drawn = client_draws(7, 3, "fleet", owner=np.array([5]), clients=1000)
    assert drawn.round(6).tolist() == [[0.473492, 0.923442, 0.548692, 0.685187]]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**70), NAMES)
def test_equal_names_give_equal_draws(seed: int, name: tuple[str | int, ...]):
    assert stream(seed, *name).integers(2**62, size=3).tolist() == stream(seed, *name).integers(2**62, size=3).tolist()


def test_other_names_give_other_draws():
    """No two of them share a draw: not by order, not by joining words, not by a number that is written as text."""
    keys = [(0,), (1,), (0, 1), (1, 0), (0, "1"), (0, "a"), (0, "a", "b"), (0, "ab"), (0, "a", 1), (0, 1, "a")]
    draws = [set(stream(*key).integers(2**62, size=1000).tolist()) for key in keys]
    assert all(one.isdisjoint(other) for one, other in itertools.combinations(draws, 2))


def test_streams_are_independent():
    """The first draws of 10,000 streams, and of their neighbours: even, and no more alike than chance allows."""
    one, other = (np.array([stream(0, n + shift, "batches").random() for n in range(10_000)]) for shift in (0, 1))
    assert one.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 10_000))
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / 100


def test_drawing_from_one_stream_moves_no_other():
    alone = stream(0, "b").random(4)
    first, second = stream(0, "a"), stream(0, "b")
    first.random(1000)
    assert second.random(4).tolist() == alone.tolist()


def test_streams_of_several_rounds_are_those_of_their_names():
    begun, owner = np.array([3, 1, 3, 10]), np.array([7, 7, 0, 2])
    drawn = [generator.random(3).tolist() for generator in streams_by_round(2**40, begun, "it's", owner)]
    pairs = zip(begun.tolist(), owner.tolist(), strict=True)
    assert drawn == [stream(2**40, number, "it's", k).random(3).tolist() for number, k in pairs]


CLIENTS = 1000  # up to 10 are jumped to, more are cut out of a draw for all


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, CLIENTS - 1), max_size=25), st.integers(0, 3))
def test_a_clients_draws_do_not_depend_on_who_else_is_asked(owner: list[int], seed: int):
    whole = client_draws(seed, 1, "fleet", owner=np.arange(CLIENTS), clients=CLIENTS)
    asked = client_draws(seed, 1, "fleet", owner=np.array(owner, dtype=np.int64), clients=CLIENTS)
    assert asked.shape == (len(owner), 4)
    assert np.array_equal(asked, whole[owner])


@pytest.mark.parametrize("asked", [1, 10, 11, 1000])
def test_few_and_many_clients_get_the_same(asked: int):
    order = stream(1, "order").permutation(CLIENTS)[:asked]
    draws = client_draws(0, "fleet", owner=order, clients=CLIENTS)
    one_by_one = [client_draws(0, "fleet", owner=order[k : k + 1], clients=CLIENTS)[0] for k in range(asked)]
    assert np.array_equal(draws, one_by_one)


def test_clients_that_join_change_nobodys_draws():
    owner = np.array([3, 0, 99])
    few, many = (client_draws(0, "fleet", owner=owner, clients=clients) for clients in (100, 1_000_000))
    assert np.array_equal(few, many)


def test_rounds_and_names_have_draws_of_their_own():
    owner = np.arange(100)
    keys = [(0, 1, "fleet"), (0, 2, "fleet"), (1, 1, "fleet"), (0, 1, "permission"), (0, "fleet")]
    draws = [set(client_draws(*key, owner=owner, clients=100).ravel().tolist()) for key in keys]
    assert all(len(one) == 400 for one in draws)
    assert all(one.isdisjoint(other) for one, other in itertools.combinations(draws, 2))


def test_draws_of_numbers_are_the_same_whichever_are_asked_for():
    owner, number = np.arange(50_000), np.arange(50_000) % 7 - 3
    drawn = indexed_draws(3, "seen", index=(owner, number))
    assert drawn[:3].round(6).tolist() == GOLDEN_INDEXED
    few = np.array([40_000, 2, 17])
    assert indexed_draws(3, "seen", index=(owner[few], number[few])).tolist() == drawn[few].tolist()
    assert (
        indexed_draws(3, "seen", index=(few, 1)).tolist() == indexed_draws(3, "seen", index=(few, few * 0 + 1)).tolist()
    )
    assert (drawn != indexed_draws(3, "other", index=(owner, number))).all()
    assert (drawn != indexed_draws(3, "seen", index=(number, owner))).all()
    assert drawn.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 50_000))
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx(5000, abs=300)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 4 / np.sqrt(50_000)


GOLDEN_INDEXED = [0.956138, 0.337702, 0.192113]
