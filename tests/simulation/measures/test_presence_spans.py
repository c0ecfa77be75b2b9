"""presence.csv: spans worked out from windows, and those of a run against who was there in its steps."""

from itertools import islice

import numpy as np
import pandas as pd
import pytest
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.run.run import run
from fedexp.simulation.measures import presence
from fedexp.simulation.measures.presence import rows, spans

WINDOWS = [[(0, 4), (20, 30)], [(2, 6)], [(9, 12), (25, np.inf)]]
AWAY = ("fleet=simulated", "availability=markov", "availability.redraw_s=2", "rounds=8")


def look(owner: np.ndarray, now_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Who is there; of who is away it is looked again after a second."""
    here = [[end for begin, end in WINDOWS[client] if begin <= now_s < end] for client in owner.tolist()]
    return np.array([bool(ends) for ends in here]), np.array([ends[0] if ends else now_s + 1 for ends in here], float)


def test_spans_by_hand():
    assert spans(look, np.array([0, 2]), 27.0) == [
        (0, 0.0, 4.0, 1),
        (0, 4.0, 20.0, 0),
        (0, 20.0, 27.0, 1),
        (2, 0.0, 9.0, 0),
        (2, 9.0, 12.0, 1),
        (2, 12.0, 25.0, 0),
        (2, 25.0, 27.0, 1),
    ]
    assert spans(look, np.array([1]), 1.5) == [(1, 0.0, 1.5, 0)]


def test_after_so_many_changes_the_table_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(presence, "CHANGES", 2)
    assert spans(look, np.array([0, 1]), 100.0) == [
        (0, 0.0, 4.0, 1),
        (0, 4.0, 5.0, 0),
        (1, 0.0, 2.0, 0),
        (1, 2.0, 5.0, 1),
    ]


def test_a_runs_spans_hold_in_its_steps(tiny: Tiny):
    world = world_of(tiny(*AWAY, "scenario.clients=30"))
    played = list(islice(rounds_with_rows(world), 8))
    lines = [tuple(line.values()) for line in rows(world.exp, world, played[-1][0])]
    clients = np.unique([client for client, *_ in lines])
    assert len(clients) == presence.CLIENTS
    timeline, before_s = world.exp.availability.timeline(30, world.exp.seed), 0.0
    for state, row, _ in played:
        now_s = before_s + row["availability.waited_s"]
        here = [present for _, from_s, to_s, present in lines if from_s <= now_s < to_s]
        assert here == timeline(clients, now_s)[0].astype(int).tolist()
        before_s = state.sim_s
    assert max(to_s for _, _, to_s, _ in lines) == played[-1][0].sim_s


def test_it_is_there_where_clients_come_and_go(tiny: Tiny, tmp_path):
    run(tiny(*AWAY), tmp_path / "away")
    run(tiny("fleet=simulated"), tmp_path / "stays")
    assert pd.read_csv(tmp_path / "away" / "presence.csv").columns.tolist() == list(presence.COLUMNS)
    assert not (tmp_path / "stays" / "presence.csv").exists()
