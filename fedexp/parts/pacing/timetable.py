"""The timetable of one step of the server: who arrives, when, and who begins meanwhile.

Times are simulated seconds since the beginning of the run. A place that becomes free is taken at once by the next
candidate, which begins with the present model; one that becomes free in the very instant of the step is taken in the
next step, with the model that this one makes. What happens at the same time happens in the order of the clients'
numbers. A client is asked at most once in a step, and only while it is there.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

UPLOADING, ARRIVING = 0, 1  # what happens first at the same time


class Candidate(NamedTuple):
    """A client that may begin, how long it would take, and what its upload weighs; what is `lost` never arrives.

    It breaks off `breaks_s` after it has begun, and goes at the time `leaves_s`, if it has not delivered by then.
    """

    owner: int
    download_s: float
    training_s: float
    upload_s: float
    lost: bool
    importance: float = 1.0
    breaks_s: float = math.inf
    leaves_s: float = math.inf


class Flight(NamedTuple):
    """A client on its way: it began in the step `begun` at `started_s`, and can upload from `ready_s` on.

    `arrives_s` is when its upload arrives, or is known not to; infinity while it waits for the link. At `leaves_s` it
    goes, whatever it has done.
    """

    owner: int
    begun: int
    started_s: float
    ready_s: float
    upload_s: float
    arrives_s: float
    lost: bool
    importance: float = 1.0
    leaves_s: float = math.inf

    def ending(self, end_s: float) -> "Flight":
        """The same client, whose upload arrives at this time, if it is still there."""
        return self._replace(arrives_s=min(end_s, self.leaves_s), lost=self.lost or self.leaves_s < end_s)


@dataclass(frozen=True)
class StepRule:
    """When a step is over: once `quota` uploads have arrived (None: any number), or after `period_s` (None: no limit).

    `concurrency` is how many clients train at a time. `refills` says whether a free place is taken within the step,
    `is_shared` whether uploads share a link and come one after another. Uploads of more than `max_staleness` steps ago
    are thrown away when they arrive (None: none). Clients are chosen, and can begin, `choice_s` after the step began.
    If nobody trains in it, the step ends `idle_s` after that.
    """

    concurrency: int
    quota: int | None = None
    period_s: float | None = None
    refills: bool = True
    is_shared: bool = False
    max_staleness: int | None = None
    choice_s: float = 0.0
    idle_s: float = 0.0


@dataclass
class ServerStep:
    """What happened in a step: the clients that `arrived`, in this order, and those that are still in `flight`.

    `now_s` is its end, `link_s` when the shared link is free again. `began` are the clients that began in it; `lost`
    counts uploads that never came, `stale` those that were thrown away.
    """

    now_s: float
    link_s: float
    arrived: list[Flight] = field(default_factory=list)
    flight: list[Flight] = field(default_factory=list)
    began: list[int] = field(default_factory=list)
    lost: int = 0
    stale: int = 0


def run_step(
    rule: StepRule, number: int, now_s: float, link_s: float, flight: Iterable[Flight], candidates: Iterable[Candidate]
) -> ServerStep:
    """Runs the step of this number from `now_s` on; the shared link is free from `link_s` on."""
    events, choice_s = [*map(next_event, flight)], now_s + rule.choice_s
    timetable = Timetable(rule, number, ServerStep(now_s, link_s), deque(candidates), events, choice_s)
    heapq.heapify(timetable.events)
    timetable.begin_candidates()
    limit_s = math.inf if rule.period_s is None else max(now_s + rule.period_s, choice_s)
    while timetable.is_open and timetable.events and timetable.next_s <= limit_s:
        timetable.advance()
        if rule.refills and timetable.is_open and timetable.step.now_s < min(timetable.next_s, limit_s):
            timetable.begin_candidates()
    return timetable.close(limit_s)


def next_event(client: Flight) -> tuple[float, int, int, Flight]:
    """What a client that is on its way does next, with the time and its number in front."""
    if client.arrives_s < math.inf:
        return client.arrives_s, ARRIVING, client.owner, client
    return client.ready_s, UPLOADING, client.owner, client


@dataclass
class Timetable:
    """The events to come, `(time, what, client, flight)` in a heap, and what has happened in the step so far."""

    rule: StepRule
    number: int
    step: ServerStep
    candidates: deque[Candidate]
    events: list[Any]
    choice_s: float

    @property
    def is_open(self) -> bool:
        """Whether the server still waits for uploads."""
        return self.rule.quota is None or len(self.step.arrived) < self.rule.quota

    @property
    def next_s(self) -> float:
        """When something happens next; infinity if nothing does."""
        return self.events[0][0] if self.events else math.inf

    def begin_candidates(self) -> None:
        """Lets candidates begin as soon as they are chosen, as many as there are free places."""
        now_s = max(self.step.now_s, self.choice_s)
        while self.candidates and len(self.events) < self.rule.concurrency:
            owner, download_s, training_s, upload_s, lost, importance, breaks_s, leaves_s = self.candidates.popleft()
            if leaves_s <= now_s:  # it has gone in this step
                continue
            ready_s, leaves_s = now_s + download_s + training_s, min(now_s + breaks_s, leaves_s)
            waits = self.rule.is_shared and not lost and leaves_s >= ready_s
            client = Flight(owner, self.number, now_s, ready_s, upload_s, math.inf, lost, importance, leaves_s)
            heapq.heappush(self.events, next_event(client if waits else client.ending(ready_s + upload_s)))
            self.step.began.append(owner)

    def advance(self) -> None:
        """Goes on to the next event."""
        self.step.now_s, kind, _, client = heapq.heappop(self.events)
        if kind == UPLOADING:
            client = client.ending(max(self.step.now_s, self.step.link_s) + client.upload_s)
            self.step.link_s = max(self.step.link_s, client.arrives_s)
            heapq.heappush(self.events, next_event(client))
        elif client.lost:
            self.step.lost += 1
        elif self.rule.max_staleness is not None and self.number - client.begun > self.rule.max_staleness:
            self.step.stale += 1
        else:
            self.step.arrived.append(client)

    def close(self, limit_s: float) -> ServerStep:
        """Ends the step: when the last upload has arrived that it waited for, or at its limit."""
        if self.is_open and limit_s < math.inf:
            self.step.now_s = limit_s
        elif self.is_open:  # nobody is on the way any more
            somebody_trained = self.step.began or self.step.arrived or self.step.lost or self.step.stale
            self.step.now_s = max(self.step.now_s, self.choice_s + (0.0 if somebody_trained else self.rule.idle_s))
        self.step.flight = [client for *_, client in self.events]
        return self.step
