"""Timetables worked out with a pencil, and what holds for all of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedexp.parts.pacing.timetable import Candidate, Flight, ServerStep, StepRule, run_step

TRAINING = (1.0, 2.0, 2.0, 3.0, 5.0, 7.0)  # seconds of six clients


def run(rule: StepRule, choices: list[list[int]], upload_s: float = 0.0) -> list[ServerStep]:
    """The steps of clients that are asked in these orders."""
    now_s, link_s, flight, steps = 0.0, 0.0, [], []
    for number, owner in enumerate(choices, start=1):
        candidates = [Candidate(client, 0.0, TRAINING[client], upload_s, False) for client in owner]
        step = run_step(rule, number, now_s, link_s, flight, candidates)
        now_s, link_s, flight = step.now_s, step.link_s, step.flight
        steps.append(step)
    return steps


def told(step: ServerStep) -> tuple:
    """Clients and the steps that they began in, as they arrived; who flies on, until when; who began; the end."""
    arrived = [(client.owner, client.begun, client.arrives_s) for client in step.arrived]
    flight = sorted(step.flight, key=lambda client: (min(client.ready_s, client.arrives_s), client.owner))
    return arrived, [(client.owner, client.arrives_s) for client in flight], step.began, step.now_s


def test_places_are_filled_as_soon_as_they_are_free():
    one, two, three = run(StepRule(4, 2), [[0, 1, 2, 3, 4], [0, 1], [2, 5]])
    assert told(one) == ([(0, 1, 1.0), (1, 1, 2.0)], [(2, 2.0), (3, 3.0), (4, 6.0)], [0, 1, 2, 3, 4], 2.0)
    assert told(two) == ([(2, 1, 2.0), (0, 2, 3.0)], [(3, 3.0), (1, 4.0), (4, 6.0)], [0, 1], 3.0)
    assert told(three) == ([(3, 1, 3.0), (1, 2, 4.0)], [(2, 5.0), (4, 6.0), (5, 10.0)], [2, 5], 4.0)


def test_places_are_filled_after_the_step():
    one, two, three = run(StepRule(4, 2, refills=False), [[0, 1, 2, 3], [4, 5], [0, 1]])
    assert told(one) == ([(0, 1, 1.0), (1, 1, 2.0)], [(2, 2.0), (3, 3.0)], [0, 1, 2, 3], 2.0)
    assert told(two) == ([(2, 1, 2.0), (3, 1, 3.0)], [(4, 7.0), (5, 9.0)], [4, 5], 3.0)
    assert told(three) == ([(0, 3, 4.0), (1, 3, 5.0)], [(4, 7.0), (5, 9.0)], [0, 1], 5.0)


def test_uploads_wait_for_a_link_that_they_share():
    one, two = run(StepRule(4, 2, is_shared=True), [[0, 1, 2, 3, 4], [0, 1]], upload_s=1.0)
    assert told(one) == ([(0, 1, 2.0), (1, 1, 3.0)], [(2, 4.0), (3, 5.0), (4, math.inf)], [0, 1, 2, 3, 4], 3.0)
    assert (one.link_s, two.link_s) == (5.0, 6.0)
    assert told(two) == ([(2, 1, 4.0), (3, 1, 5.0)], [(0, 6.0), (1, math.inf), (4, math.inf)], [0, 1], 5.0)


def test_uploads_side_by_side():
    one, two = run(StepRule(4, 2), [[0, 1, 2, 3, 4], [0, 1]], upload_s=1.0)
    assert told(one) == ([(0, 1, 2.0), (1, 1, 3.0)], [(2, 3.0), (3, 4.0), (4, 8.0)], [0, 1, 2, 3, 4], 3.0)
    assert told(two) == ([(2, 1, 3.0), (3, 1, 4.0)], [(0, 5.0), (1, 6.0), (4, 8.0)], [0, 1], 4.0)


def test_who_arrives_together_comes_in_the_order_of_the_numbers():
    rule, candidates = StepRule(3, 3), [Candidate(client, 0.5, 1.0, 0.5, False) for client in (2, 0, 1)]
    assert [client.owner for client in run_step(rule, 1, 0.0, 0.0, [], candidates).arrived] == [0, 1, 2]


def test_a_place_that_becomes_free_in_the_instant_of_the_step_waits_for_its_model():
    candidates = [Candidate(client, 0.0, 1.0, 0.0, False) for client in range(6)]
    step = run_step(StepRule(4, 4), 1, 0.0, 0.0, [], candidates)
    assert (step.began, step.flight, step.now_s) == ([0, 1, 2, 3], [], 1.0)


def test_a_period_ends_the_step_and_counts_what_arrives_in_its_last_instant():
    one, two = run(StepRule(4, None, 2.0, refills=False), [[0, 1, 4, 5], [2, 3]])
    assert told(one) == ([(0, 1, 1.0), (1, 1, 2.0)], [(4, 5.0), (5, 7.0)], [0, 1, 4, 5], 2.0)
    assert told(two) == ([(2, 2, 4.0)], [(3, 5.0), (4, 5.0), (5, 7.0)], [2, 3], 4.0)


def test_who_is_chosen_later_begins_later():
    """Judging takes half a second: nobody begins before it is over, and who begins still later does not wait for it."""
    one, two = run(StepRule(2, 2, choice_s=0.5), [[0, 4, 1], [2]])
    assert told(one) == ([(0, 1, 1.5), (1, 1, 3.5)], [(4, 5.5)], [0, 4, 1], 3.5)
    assert [client.started_s for client in one.arrived] == [0.5, 1.5]
    assert told(two)[0] == [(4, 1, 5.5), (2, 2, 6.0)]


def test_who_goes_while_others_judge_does_not_begin():
    candidates = [
        Candidate(0, 0.0, 1.0, 0.0, False, leaves_s=10.5),  # gone when the choice is made
        Candidate(1, 0.0, 4.0, 0.0, False, 2.0, breaks_s=3.0),  # from its beginning on: at 13.5
        Candidate(2, 0.0, 4.0, 0.0, False, 3.0, leaves_s=14.5),  # as it has delivered
        Candidate(3, 0.0, 1.0, 0.0, False, 4.0),
    ]
    step = run_step(StepRule(2, 2, choice_s=0.5), 1, 10.0, 0.0, [], candidates)
    assert told(step) == ([(2, 1, 14.5), (3, 1, 14.5)], [], [1, 2, 3], 14.5)
    assert ([client.importance for client in step.arrived], step.lost) == ([3.0, 4.0], 1)


def test_judging_takes_its_time_though_nobody_begins_after_it():
    gone = [Candidate(0, 0.0, 1.0, 0.0, False, leaves_s=50.0)]
    assert told(run_step(StepRule(2, 2, choice_s=100.0), 1, 0.0, 0.0, [], gone)) == ([], [], [], 100.0)


def test_a_step_that_nobody_trains_in_lasts_as_long_as_the_server_waits():
    rule, gone = StepRule(2, 2, choice_s=1.0, idle_s=30.0), Candidate(0, 0.0, 1.0, 0.0, False, leaves_s=10.5)
    assert told(run_step(rule, 1, 10.0, 0.0, [], [])) == ([], [], [], 41.0)
    assert told(run_step(rule, 1, 10.0, 0.0, [], [gone])) == ([], [], [], 41.0)
    lost = gone._replace(lost=True, leaves_s=math.inf)
    assert told(run_step(rule, 1, 10.0, 0.0, [], [lost])) == ([], [], [0], 12.0)
    few = gone._replace(leaves_s=math.inf)
    assert told(run_step(rule, 1, 10.0, 0.0, [], [few])) == ([(0, 1, 12.0)], [], [0], 12.0)


def test_a_period_is_at_least_as_long_as_judging():
    step = run_step(
        StepRule(2, None, period_s=60.0, choice_s=100.0), 1, 0.0, 0.0, [], [Candidate(0, 0.0, 9.0, 0.0, False)]
    )
    assert told(step) == ([], [(0, 109.0)], [0], 100.0)


def test_what_is_lost_takes_its_time_and_frees_its_place():
    candidates = [
        Candidate(0, 0.0, 1.0, 1.0, True),
        Candidate(1, 0.0, 5.0, 1.0, False),
        Candidate(2, 0.0, 1.0, 1.0, False),
    ]
    step = run_step(StepRule(2, 1), 1, 0.0, 0.0, [], candidates)
    assert told(step) == ([(2, 1, 4.0)], [(1, 6.0)], [0, 1, 2], 4.0)
    assert step.lost == 1


def test_who_breaks_off_is_lost_then_and_its_place_is_free():
    candidates = [
        Candidate(0, 0.0, 4.0, 2.0, False, breaks_s=3.0),  # in its training
        Candidate(1, 0.0, 1.0, 4.0, False, breaks_s=2.0),  # in its upload
        Candidate(2, 0.0, 3.0, 1.0, False),
        Candidate(3, 0.0, 1.0, 1.0, False, breaks_s=2.0),  # it has delivered by then
    ]
    step = run_step(StepRule(2, 2), 1, 0.0, 0.0, [], candidates)
    assert told(step) == ([(3, 1, 5.0), (2, 1, 6.0)], [], [0, 1, 2, 3], 6.0)
    assert step.lost == 2


def test_who_goes_away_is_lost_and_begins_nothing_after():
    candidates = [
        Candidate(0, 0.0, 2.0, 0.0, False),
        Candidate(1, 0.0, 9.0, 0.0, False, leaves_s=13.0),
        Candidate(2, 0.0, 1.0, 0.0, False, leaves_s=12.0),  # gone when the first place becomes free
        Candidate(3, 0.0, 1.0, 0.0, False, leaves_s=13.5),  # it delivers before it goes
        Candidate(4, 0.0, 5.0, 0.0, False, leaves_s=20.0),
    ]
    step = run_step(StepRule(2, 3), 1, 10.0, 0.0, [], candidates)
    assert told(step) == ([(0, 1, 12.0), (3, 1, 13.0), (4, 1, 18.0)], [], [0, 1, 3, 4], 18.0)
    assert step.lost == 1


def test_a_link_is_free_again_when_who_sends_goes():
    candidates = [
        Candidate(0, 0.0, 1.0, 4.0, False, leaves_s=3.0),  # sends from 1 to 3
        Candidate(1, 0.0, 2.0, 4.0, False),  # sends from 3 to 7
        Candidate(2, 0.0, 3.0, 4.0, False, leaves_s=6.0),  # goes before its turn
        Candidate(3, 0.0, 4.0, 4.0, False),  # sends from 7 to 11
    ]
    step = run_step(StepRule(4, 2, is_shared=True), 1, 0.0, 0.0, [], candidates)
    assert told(step) == ([(1, 1, 7.0), (3, 1, 11.0)], [], [0, 1, 2, 3], 11.0)
    assert (step.lost, step.link_s) == (2, 11.0)


def test_what_is_too_old_is_thrown_away():
    flight = [Flight(0, 1, 0.0, 5.0, 0.0, 5.0, False), Flight(1, 3, 4.0, 6.0, 0.0, 6.0, False)]
    step = run_step(StepRule(2, 1, refills=False, max_staleness=2), 4, 4.0, 0.0, flight, [])
    assert (told(step)[0], step.stale) == ([(1, 3, 6.0)], 1)


def test_nobody_in_flight_takes_no_time():
    assert told(run_step(StepRule(2, 2), 3, 8.0, 0.0, [], [])) == ([], [], [], 8.0)


FLEETS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "places": st.integers(1, 8),
        "quota": st.integers(1, 8) | st.none(),
        "refills": st.booleans(),
        "is_shared": st.booleans(),
        "loss": st.sampled_from([0.0, 0.3]),
        "whole": st.booleans(),
        "goes": st.booleans(),
    }
)


@given(FLEETS)
def test_laws_of_every_timetable(fleet: dict):
    draw = np.random.default_rng(fleet["seed"])
    period_s = 2.5 if fleet["quota"] is None else None
    rule = StepRule(fleet["places"], fleet["quota"], period_s, fleet["refills"], fleet["is_shared"])
    now_s, link_s, flight = 0.0, 0.0, []
    began, ended, ages_at_arrival, in_flight = [], 0, 0, 0
    for number in range(1, 25):
        busy = {client.owner for client in flight}
        free = [client for client in draw.permutation(12).tolist() if client not in busy]
        seconds = draw.integers(0, 4, (len(free), 3)).astype(float) if fleet["whole"] else draw.random((len(free), 3))
        lost = (draw.random(len(free)) < fleet["loss"]).tolist()
        until_s = (now_s + draw.exponential(3.0, (2, len(free))) * (1 if fleet["goes"] else np.inf)).tolist()
        candidates = [
            Candidate(k, row[0], row[1], row[2], gone, breaks_s - now_s, leaves_s)
            for k, row, gone, breaks_s, leaves_s in zip(free, seconds.tolist(), lost, *until_s, strict=True)
        ]
        step = run_step(rule, number, now_s, link_s, flight, candidates)
        owners = [client.owner for client in step.flight]
        assert step.now_s >= now_s  # time never runs back
        assert len(owners) == len(set(owners)) <= rule.concurrency  # nobody is on the way twice
        assert len(set(step.began)) == len(step.began)  # nobody is asked twice
        assert all(now_s <= client.arrives_s <= step.now_s for client in step.arrived)
        began += step.began
        ended += len(step.arrived) + step.lost
        ages_at_arrival += sum(number - client.begun for client in step.arrived)
        now_s, link_s, flight = step.now_s, step.link_s, step.flight
        in_flight += len(flight)
        assert all(
            client.arrives_s <= client.leaves_s for client in (*step.arrived, *flight) if client.arrives_s < math.inf
        )
        if not fleet["loss"] and not fleet["goes"]:
            ages = sum(number + 1 - client.begun for client in flight)
            assert ages_at_arrival + ages == in_flight
        assert len(began) == ended + len(flight)  # who began has arrived, is lost, or is on the way


@pytest.mark.parametrize("law", ["equal", "uniform", "exponential", "two_kinds"])
def test_mean_staleness_is_the_number_in_flight_over_the_buffer(law: str):
    draw = np.random.default_rng(0)
    speed = {
        "equal": np.ones(300),
        "uniform": draw.random(300) + 0.5,
        "exponential": draw.exponential(size=300),
        "two_kinds": np.where(np.arange(300) % 2, 1.0, 10.0),
    }[law]
    now_s, flight, ages, in_flight = 0.0, [], [], []
    for number in range(1, 600):
        busy = {client.owner for client in flight}
        free = [client for client in draw.permutation(300).tolist() if client not in busy]
        candidates = [Candidate(client, 0.0, float(speed[client]), 0.0, False) for client in free]
        step = run_step(StepRule(100, 10), number, now_s, 0.0, flight, candidates)
        now_s, flight = step.now_s, step.flight
        ages += [number - client.begun for client in step.arrived]
        in_flight.append(len(flight))
    assert np.mean(ages) == pytest.approx(np.mean(in_flight) / 10, abs=0.2)
    assert 90 <= np.mean(in_flight) <= 99
