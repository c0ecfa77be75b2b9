"""When clients arrive, counted by hand."""

import numpy as np
import pytest

from fedexp.core.errors import ConfigError
from fedexp.core.random_streams import stream
from fedexp.parts.clustering.arrivals import count_arrivals, parse_arrivals


def test_a_schedule_is_a_list_of_rounds_and_counts():
    assert parse_arrivals(("3:2", "5:1")) == {3: 2, 5: 1}
    assert parse_arrivals(()) == {}


@pytest.mark.parametrize("word", ["3", "3:", ":2", "0:1", "-1:2", "3:x", "3:2:1"])
def test_other_words_are_refused(word: str):
    with pytest.raises(ConfigError, match=r"must list ROUND:COUNT, each round once and from 1 on.*got '"):
        parse_arrivals(("4:1", word))


def test_a_round_occurs_once():
    with pytest.raises(ConfigError, match="got '3:1'"):
        parse_arrivals(("3:2", "3:1"))


def test_who_is_in_no_schedule_is_there_before_the_first_round():
    counts = {1: 2, 3: 1}
    arrived = [count_arrivals(number, 6, counts, 0.0, stream(0, "arrivals")) for number in range(5)]
    assert arrived == [3, 5, 5, 6, 6]
    assert count_arrivals(0, 6, {}, 0.0, stream(0, "arrivals")) == 6


def test_a_schedule_of_more_clients_than_there_are_ends_with_the_last():
    assert [count_arrivals(number, 4, {1: 3, 2: 3}, 0.0, stream(0, "arrivals")) for number in range(3)] == [0, 3, 4]


def test_a_rate_begins_with_one_and_never_takes_back():
    arrived = [count_arrivals(number, 50, {}, 1.5, stream(0, "arrivals")) for number in range(60)]
    assert arrived[0] == 1
    assert (np.diff(arrived) >= 0).all()
    assert arrived[-1] == 50
    drawn = stream(0, "arrivals").poisson(1.5, size=10)
    assert arrived[:11] == [1, *(1 + np.cumsum(drawn)).tolist()]
