"""What every law of availability must keep, found from conf/."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from composing import options
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Tiny, rounds_with_rows, same, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.availability.contract import Availability
from fedexp.parts.availability.day import Day
from fedexp.parts.availability.markov import Markov
from fedexp.parts.availability.trace import read_windows
from fedexp.simulation.presence import Presence
from fedexp.simulation.setup.compatibility import refuse

LAWS = sorted(set(options("availability")) - {"always"})
FLEET = ("fleet=simulated", "fleet.speed_low=5", "fleet.link=own", "scenario.participants=3", "rounds=20")
PACINGS = {
    "synchronous": (),
    "buffered": ("pacing=buffered", "pacing.clients=3", "pacing.buffer=2"),
    "periodic": ("pacing=periodic", "pacing.clients=3", "pacing.period_s=2"),
    "over_selection": ("pacing=over_selection", "pacing.uploads=2"),
    "judged": ("pacing=buffered", "pacing.clients=3", "pacing.buffer=2", "selector=power_of_choice"),
}
COUNTED = {"synchronous": 3, "over_selection": 2}  # uploads of a round after which all are free


def law(option: str, folder: Path) -> tuple[str, ...]:
    """A law under which clients of a tiny run come and go within it."""
    if option == "trace":
        rows = [f"{client},{begin + client},{begin + client + 9}\n" for client in range(6) for begin in (0, 20, 50)]
        (folder / "windows.csv").write_text("client,from_s,to_s\n" + "".join(rows))
        return (f"availability={option}", f"availability.path={folder}/windows.csv", "availability.repeat_s=90")
    share = ("availability.share=0.5", "availability.redraw_s=4")
    return (
        f"availability={option}",
        *share,
        *(("availability.day_s=60",) if "swing" in Day.config_keys() and option in ("day", "sin_lognormal") else ()),
    )


@pytest.mark.parametrize("pacing", PACINGS)
@pytest.mark.parametrize("option", LAWS)
def test_whoever_is_away_is_not_asked_and_time_goes_on(tiny: Tiny, option: str, pacing: str, tmp_path: Path):
    world = world_of(tiny(*FLEET, *law(option, tmp_path), *PACINGS[pacing], "availability.interrupts=false"))
    look = world.exp.availability.timeline(6, world.exp.seed)
    before_s, participants = 0.0, 0
    for state, row, sent in islice(rounds_with_rows(world), 12):
        begin_s = before_s + row["availability.waited_s"]
        present = look(np.arange(6), begin_s)[0]
        assert row["availability.present"] == present.sum()
        if pacing in COUNTED:
            assert set(sent.owner) <= set(np.flatnonzero(present))
            assert len(sent.owner) == min(COUNTED[pacing], present.sum()) > 0
            assert state.sim_s > begin_s
        else:
            assert set(state.memory["pacing"]["flight"]["owner"].tolist()).isdisjoint(sent.owner)
        participants += row["participants"]
        before_s = state.sim_s
    assert participants > 6


@pytest.mark.parametrize("pacing", ["synchronous", "buffered", "over_selection", "judged"])
@pytest.mark.parametrize("option", LAWS)
def test_a_run_that_goes_on_from_a_state_is_the_same_run(tiny: Tiny, option: str, pacing: str, tmp_path: Path):
    config = tiny(*FLEET, *law(option, tmp_path), *PACINGS[pacing])
    whole = list(islice(rounds_with_rows(world_of(config)), 8))
    world = world_of(config)
    state = whole[3][0]
    from fedexp.simulation.round import run_round

    for expected, row, _ in whole[4:]:
        state, again, _ = run_round(world.exp, world, state)
        assert same(
            {"memory": state.memory, "sim_s": state.sim_s}, {"memory": expected.memory, "sim_s": expected.sim_s}
        )
        assert (state.models[0].flat == expected.models[0].flat).all()
        assert again["availability.present"] == row["availability.present"]


def timeline(option: str, folder: Path):
    if option == "trace":
        law(option, folder)
        return read_windows(folder / "windows.csv", 90.0).look
    kinds = {"markov": Markov(redraw_s=7.0, outage_every_s=60.0, outage_s=9.0, sites=2)}
    kinds |= {"lognormal": Markov(share=1.0, spread=0.3, redraw_s=5.0)}
    kinds |= {"day": Day(redraw_s=3.0, day_s=50.0, zones=0.5, swing=1.0)}
    kinds |= {"sin_lognormal": Day(redraw_s=6.0, day_s=100.0, spread=0.2)}
    return kinds[option].timeline(6, 5)


@pytest.mark.parametrize("option", LAWS)
@settings(max_examples=8, deadline=None)
@given(times=st.lists(st.floats(0, 400), min_size=1, max_size=3), owner=st.permutations(range(6)))
def test_what_is_seen_depends_on_the_time_alone(option: str, times: list[float], owner: list[int], tmp_path_factory):
    look = timeline(option, tmp_path_factory.mktemp("law"))
    presence, everybody = Presence(look, 6), np.arange(6)
    for now_s in times:  # in any order, also backwards
        presence.move(now_s)
        present, until_s = look(everybody, now_s)
        assert presence.present.tolist() == present.tolist()
        assert presence.count == present.sum()
        assert (until_s > now_s).all()
        shuffled = look(np.array(owner), now_s)
        assert shuffled[0].tolist() == present[owner].tolist()
        assert shuffled[1].tolist() == until_s[owner].tolist()
        for client in owner[:2]:
            if np.isinf(until_s[client]):
                continue
            before, after = (
                look(np.array([client]), at_s)[0][0] for at_s in (np.nextafter(until_s[client], 0), until_s[client])
            )
            assert before == present[client]  # nothing changes until then
            assert not (present[client] and after)  # who is there goes then


def test_always_asks_nothing():
    assert not Availability().changes
    with pytest.raises(NotImplementedError):
        Availability().timeline(3, 0)


def test_without_a_clock_nobody_can_come_and_go(tiny: Tiny):
    with pytest.raises(
        ConfigError, match="availability=markov has clients come and go in simulated time, but the server"
    ):
        refuse(spec.build(tiny("availability=markov")))
    refuse(spec.build(tiny("availability=markov", "pacing=buffered", "pacing.buffer=1")))


def test_privacy_of_clients_is_counted_without_amplification(tiny: Tiny):
    words = ("privacy=client_central", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    words = (*words, "aggregator.weighting=uniform", "scenario.participants=2", "fleet=simulated")
    rates = [world_of(tiny(*words, *more)).exp.privacy.rate for more in ((), ("availability=markov",))]  # pyright: ignore[reportAttributeAccessIssue]
    assert rates == [pytest.approx(1 / 3), 1]
