"""Who arrives when, and how stale, as APPFL 1.12's virtual clock has it; scripts/appfl_clock.py wrote that down."""

import csv

import pytest

from scripts import appfl_clock
from scripts.appfl_clock import CASES, RECORD, UPLOADS, Case, Event, differences, ours


def recorded(case: Case) -> list[Event]:
    with RECORD.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["case"] == case.name]
    return [Event(int(line["client"]), float(line["arrived_s"]), int(line["staleness"])) for line in lines]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_upload_comes_as_in_appfl(case: Case):
    theirs = recorded(case)
    assert len(theirs) == UPLOADS
    assert list(differences(ours(case), theirs)) == []
    assert max(event.staleness for event in theirs) > (case.in_flight > 2)


def test_two_clients_by_hand(monkeypatch: pytest.MonkeyPatch):
    """One takes 2 s, the other 5 s; a step for each upload."""
    monkeypatch.setattr(appfl_clock, "durations", lambda case: [2.0, 5.0])
    first = [Event(0, 2, 0), Event(0, 4, 0), Event(1, 5, 2), Event(0, 6, 1), Event(0, 8, 0)]
    assert ours(Case(2, 2, 1))[:5] == first


def test_what_differs_is_found():
    events = recorded(CASES[1])
    for odd in (
        events[3]._replace(client=events[3].client + 1),
        events[3]._replace(staleness=events[3].staleness + 1),
        events[3]._replace(arrived_s=events[3].arrived_s + 1e-6),
    ):
        assert len(list(differences([*events[:3], odd, *events[4:]], events))) == 1
