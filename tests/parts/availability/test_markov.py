"""Shares of time, stays and absences, outages of sites: as often and as long as asked for."""

import numpy as np
import pytest

from fedexp.parts.availability.contract import Timeline
from fedexp.parts.availability.markov import Markov, client_shares


def presence(look: Timeline, clients: int, times: np.ndarray) -> np.ndarray:
    """Who is there at which time, `[T, N]`."""
    return np.array([look(np.arange(clients), now_s)[0] for now_s in times.tolist()])


def stays(look: Timeline, client: int, end_s: float) -> tuple[list[float], list[float]]:
    """How long a client is there, and how long it is away, each time."""
    lengths: tuple[list[float], list[float]] = ([], [])
    now_s, owner = 0.0, np.array([client])
    while now_s < end_s:
        (is_present,), (until_s,) = look(owner, now_s)
        lengths[0 if is_present else 1].append(until_s - now_s)
        now_s = until_s
    return lengths


def test_stays_and_absences_are_exponential():
    present_s, absent_s = stays(Markov(share=0.75, redraw_s=30.0).timeline(1, 0), 0, 120_000.0)
    assert np.mean(present_s) == pytest.approx(120, rel=0.15)  # redraw_s / (1 - p)
    assert np.mean(absent_s) == pytest.approx(40, rel=0.15)  # redraw_s / p
    assert np.std(present_s) == pytest.approx(120, rel=0.2)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_clients_are_there_for_their_share_from_the_beginning_on(share: float):
    look = Markov(share=share, redraw_s=10.0).timeline(4000, 0)
    for now_s in (0.0, 35.0, 1e6):
        assert look(np.arange(4000), now_s)[0].mean() == pytest.approx(share, abs=0.03)


def test_the_correlation_in_time_is_that_of_the_chain():
    look = Markov(redraw_s=10.0).timeline(20_000, 3)
    one, other = presence(look, 20_000, np.array([50.0, 57.0])) - 0.5
    assert 4 * (one * other).mean() == pytest.approx(np.exp(-0.7), abs=0.02)


def test_who_is_always_there_stays_for_good():
    present, until_s = Markov(share=1.0).timeline(3, 0)(np.arange(3), 1e7)
    assert present.all()
    assert np.isinf(until_s).all()


def test_lognormal_shares_are_those_of_flgo():
    shares = client_shares(1.0, 0.1, 2000, 0)
    spread = np.log(shares)
    assert shares.max() == 1
    assert spread.std() == pytest.approx(-np.log(0.9), rel=0.05)
    assert client_shares(0.5, 0.1, 2000, 0) == pytest.approx(shares / 2)
    look = Markov(share=1.0, spread=0.1, redraw_s=5.0).timeline(2000, 0)
    measured = presence(look, 2000, np.arange(0, 2000, 20.0)).mean(axis=0)
    assert measured.mean() == pytest.approx(shares.mean(), abs=0.01)
    assert np.corrcoef(measured, shares)[0, 1] > 0.85


def test_an_outage_takes_all_clients_of_its_site():
    law = Markov(share=1.0, outage_every_s=90.0, outage_s=10.0, sites=4)
    seen = presence(law.timeline(200, 0), 200, np.arange(0, 20_000, 80.0))
    groups, sizes = np.unique(seen, axis=1, return_counts=True)
    assert groups.shape[1] == 4  # clients of a site come and go together, and the sites each by itself
    assert sizes.min() > 25
    assert seen.mean() == pytest.approx(0.9, abs=0.04)
    assert abs(np.corrcoef(groups.T)[np.triu_indices(4, 1)]).max() < 0.3


def test_with_one_site_all_are_away_at_once():
    look = Markov(share=1.0, outage_every_s=50.0, outage_s=50.0).timeline(30, 0)
    seen = presence(look, 30, np.arange(0, 3000, 30.0))
    assert set(seen.sum(axis=1)) == {0, 30}
    present_s, absent_s = stays(look, 4, 20_000.0)
    assert np.mean(present_s) == pytest.approx(50, rel=0.2)
    assert np.mean(absent_s) == pytest.approx(50, rel=0.2)
