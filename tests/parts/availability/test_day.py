"""A rhythm of the day: as many are there at each time as the sine says."""

import numpy as np
import pytest

from fedexp.core.errors import ConfigError
from fedexp.parts.availability.day import Day
from fedexp.parts.availability.markov import client_shares


def share(look, clients: int, now_s: float) -> float:
    return look(np.arange(clients), now_s)[0].mean()


def test_most_are_there_after_a_quarter_of_the_day_and_fewest_after_three():
    look = Day(redraw_s=2.0, day_s=1000.0).timeline(5000, 0)
    measured = [share(look, 5000, 7000 + 1000 * part) for part in (0, 0.25, 0.5, 0.75)]
    assert measured == pytest.approx([0.5, 0.9, 0.5, 0.1], abs=0.03)


def test_over_the_day_each_is_there_for_its_share():
    law = Day(redraw_s=40.0, day_s=1000.0, spread=0.3)
    look, clients = law.timeline(100, 1), np.arange(100)
    measured = np.mean([look(clients, now_s)[0] for now_s in np.arange(0, 10_000, 50.0).tolist()], axis=0)
    shares = client_shares(0.5, 0.3, 100, 1)
    assert measured.mean() == pytest.approx(shares.mean(), abs=0.03)
    assert np.corrcoef(measured, shares)[0, 1] > 0.85


def test_around_the_globe_it_is_always_day_somewhere():
    one, all_zones = (Day(redraw_s=2.0, day_s=1000.0, zones=zones).timeline(5000, 0) for zones in (0.0, 1.0))
    assert share(one, 5000, 3750) == pytest.approx(0.1, abs=0.03)
    assert share(all_zones, 5000, 3750) == pytest.approx(0.5, abs=0.03)


def test_half_a_globe_is_ahead_of_the_first_zone():
    """The mean of sin(2 pi (t + z)) for z from 0 to 1/2 is 2 cos(2 pi t) / pi."""
    look = Day(redraw_s=2.0, day_s=1000.0, zones=0.5).timeline(5000, 0)
    for part in (0, 0.25, 0.5):
        expected = 0.5 * (1 + 0.8 * 2 * np.cos(2 * np.pi * part) / np.pi)
        assert share(look, 5000, 7000 + 1000 * part) == pytest.approx(expected, abs=0.03)


def test_the_law_of_flgo():
    """q_k (0.5 + 0.4 sin(2 pi t / T)) in a day of 24 rounds of a minute."""
    look = Day(redraw_s=1.0, day_s=1440.0, spread=0.1).timeline(5000, 0)
    mean = 2 * client_shares(0.5, 0.1, 5000, 0).mean()
    for hour in (3, 9, 20):
        expected = mean * (0.5 + 0.4 * np.sin(2 * np.pi * hour / 24))
        assert share(look, 5000, 14_400 + 60.0 * hour) == pytest.approx(expected, abs=0.03)


def test_more_than_all_cannot_be_there():
    with pytest.raises(ConfigError, match=r"Day\.share must be at most 1 / \(1 \+ swing\) = 0\.5556, .* got 0\.6"):
        Day(share=0.6)
    assert Day(share=0.6, swing=0.5).share == 0.6
