"""Compares arrivals and staleness with those of APPFL's virtual clock, event by event.

    pip install --no-deps appfl==1.12.0     # in an environment of its own, with fedexp beside it
    python scripts/appfl_clock.py           # compares, and writes tests/parts/pacing/appfl_events.csv

Its `AsyncSimDriver` runs with its own scheduler and aggregators, with clients that only take their time; who has waited
longest begins next, in both. Staleness is the one that its aggregator discounts by: the driver's own number counts
uploads instead of steps with FedBuff. All times differ: at the same time APPFL goes by the order in which clients
began, and we by their numbers. Ends with `6 of 6 alike`, else with exit code 1.
"""

# pyright: reportMissingImports=false
import csv
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fedexp.parts.pacing.timetable import Candidate, Flight, StepRule, run_step  # noqa: E402

RECORD = ROOT / "tests" / "parts" / "pacing" / "appfl_events.csv"
UPLOADS = 60


class Case(NamedTuple):
    """So many clients, of which `in_flight` train at a time; a step takes `buffer` uploads."""

    clients: int
    in_flight: int
    buffer: int

    @property
    def name(self) -> str:
        method = "FedAsync" if self.buffer == 1 else "FedBuff"
        return f"{method} {self.in_flight} of {self.clients} buffer {self.buffer}"


class Event(NamedTuple):
    """An upload: whose, when it arrived, and how many steps the server had taken since its client began."""

    client: int
    arrived_s: float
    staleness: int


CASES = (Case(2, 2, 1), Case(4, 4, 1), Case(10, 10, 1), Case(6, 2, 2), Case(9, 4, 3), Case(24, 10, 5))


def durations(case: Case) -> list[float]:
    """Seconds of a training of each client, log-normal, the same in each."""
    return np.exp(np.random.default_rng(case.clients).normal(size=case.clients)).tolist()


def ours(case: Case) -> list[Event]:
    """The first uploads by our timetable."""
    seconds, waiting, flight = durations(case), deque(range(case.clients)), []
    rule, events, now_s, step = StepRule(case.in_flight, case.buffer), [], 0.0, 0
    while len(events) < UPLOADS:
        step += 1
        candidates = [Candidate(client, 0.0, seconds[client], 0.0, False) for client in waiting]
        done = run_step(rule, step, now_s, 0.0, flight, candidates)
        waiting = deque(client for client in waiting if client not in done.began)
        waiting.extend(arrived.owner for arrived in done.arrived)
        events += [_event(arrived, step) for arrived in done.arrived]
        now_s, flight = done.now_s, done.flight
    return events[:UPLOADS]


def _event(arrived: Flight, step: int) -> Event:
    return Event(arrived.owner, arrived.arrives_s, step - arrived.begun)


class LongestWaiting:
    """In place of APPFL's random numbers: who has waited longest begins."""

    def __init__(self, clients: int) -> None:
        self.waiting = deque(map(str, range(clients)))

    def sample(self, idle: list[str], count: int) -> list[str]:
        self.waiting.extend(client for client in idle if client not in self.waiting)
        return [self.waiting.popleft() for _ in range(count)]


class Idle:
    """A client of APPFL that takes one step and changes nothing."""

    def __init__(self, number: int) -> None:
        self.number = str(number)

    def get_id(self) -> str:
        return self.number

    def load_parameters(self, parameters: Any) -> None:
        self.parameters = parameters

    def train(self) -> None:
        pass

    def get_parameters(self) -> tuple[Any, dict[str, int]]:
        return self.parameters, {"current_local_steps": 1}


class Server:
    """APPFL's scheduler and aggregator, and a list of the staleness of what they were given."""

    def __init__(self, case: Case) -> None:
        import torch
        from appfl.algorithm.aggregator import FedAsyncAggregator, FedBuffAggregator
        from appfl.algorithm.scheduler import AsyncScheduler
        from omegaconf import DictConfig

        kind = FedAsyncAggregator if case.buffer == 1 else FedBuffAggregator
        configs = DictConfig({"K": case.buffer, "num_clients": case.clients, "optimize_memory": False})
        self.aggregator = kind(torch.nn.Linear(1, 1), configs)
        self.scheduler = AsyncScheduler(DictConfig({"optimize_memory": False}), self.aggregator, None)
        self.staleness: list[int] = []

    def get_parameters(self, client_id: str | None = None, **_: Any) -> Any:
        return self.aggregator.get_parameters(client_id)

    def training_finished(self) -> bool:
        return len(self.staleness) == UPLOADS

    def global_update(self, client_id: str, local_model: Any, **_: Any) -> Any:
        self.staleness.append(self.aggregator.global_step - self.aggregator.client_step[client_id])
        return self.scheduler.schedule(client_id, local_model)


def theirs(case: Case) -> list[Event]:
    """The first uploads by APPFL's driver."""
    import logging

    from appfl.vsim import AsyncSimDriver, ClientProfile

    logging.disable(logging.INFO)
    profiles = {str(client): ClientProfile(seconds, 0.0) for client, seconds in enumerate(durations(case))}
    server, log = Server(case), logging.getLogger("appfl")
    people = [Idle(client) for client in range(case.clients)]
    driver = AsyncSimDriver(server, people, profiles, case.in_flight, log, base_step_time=1.0)
    driver._rng = LongestWaiting(case.clients)
    driver.run()
    uploads = zip(driver.history, server.staleness, strict=True)
    return [Event(int(record["cid"]), record["vtime"], staleness) for record, staleness in uploads]


def differences(one: list[Event], other: list[Event]) -> Iterator[str]:
    """What two lists of uploads do not have in common; times within a nanosecond."""
    for number, (first, second) in enumerate(zip(one, other, strict=True)):
        same_time = abs(first.arrived_s - second.arrived_s) < 1e-9
        if (first.client, first.staleness) != (second.client, second.staleness) or not same_time:
            yield f"upload {number}: {tuple(first)} and {tuple(second)}"


def main() -> int:
    """Compares all cases and writes APPFL's events."""
    alike, lines = 0, []
    for case in CASES:
        recorded = theirs(case)
        lines += [(case.name, *event) for event in recorded]
        odd = list(differences(ours(case), recorded))
        alike += not odd
        print(f"{case.name}: {odd[0] if odd else f'{len(recorded)} uploads alike'}")
    with RECORD.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("case", *Event._fields), *lines])
    print(f"{alike} of {len(CASES)} alike")
    return int(alike < len(CASES))


if __name__ == "__main__":
    sys.exit(main())
