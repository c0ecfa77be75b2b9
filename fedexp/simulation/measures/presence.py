"""presence.csv: when some clients were there, and when away, on the simulated clock of a run.

It is there where clients come and go (`availability`). At most `CLIENTS` clients, evenly over their numbers, have lines
that follow each other from 0 on: `present` is 1 from `from_s` until just before `to_s`, or 0. The table ends with the
run, or once there were `CHANGES` changes. Legend: n clients.
"""

from typing import Any

import numpy as np

from fedexp.core.values import State
from fedexp.parts.availability.contract import Timeline
from fedexp.simulation.checks.contract_checks import checked_timeline
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World, with_client_name

NAME, COLUMNS = "presence.csv", ("client", "from_s", "to_s", "present")
CLIENTS, CHANGES = 20, 1000

Span = tuple[int, float, float, int]  # the columns


def rows(exp: Experiment, world: World, state: State) -> list[dict[str, Any]]:
    """The lines of a run that ended with this state, by client and time; none where all are always there."""
    clients = world.partition.clients
    if not exp.availability.changes or not state.sim_s:
        return []
    chosen = np.unique(np.linspace(0, clients - 1, min(clients, CLIENTS)).round().astype(np.int64))
    recorded = spans(checked_timeline(exp, clients), chosen, state.sim_s)
    lines = (dict(zip(COLUMNS, span, strict=True)) for span in recorded)
    return [with_client_name(line, world.client_names) for line in lines]


def spans(timeline: Timeline, owner: np.ndarray, end_s: float) -> list[Span]:
    """The spans of the clients `owner [n]` from 0 to `end_s`, by client and time."""
    present, until_s = timeline(owner, 0.0)
    present, until_s, since_s, recorded = present.copy(), until_s.copy(), np.zeros(len(owner)), []

    def close(rows: np.ndarray, now_s: float) -> None:
        columns = (owner[rows], since_s[rows], np.full(len(rows), now_s), present[rows].astype(np.int64))
        recorded.extend(zip(*(column.tolist() for column in columns), strict=True))
        since_s[rows] = now_s

    while len(recorded) < CHANGES and (now_s := float(until_s.min())) < end_s:
        changing = np.flatnonzero(until_s == now_s)
        present_now, until_s[changing] = timeline(owner[changing], now_s)
        changed = present_now != present[changing]  # one that was away may still be so
        close(changing[changed], now_s)
        present[changing] = present_now
    close(np.arange(len(owner)), min(end_s, float(until_s.min())))
    return sorted(recorded)
