"""Seconds of work on a device: a GPU is asked to do things and does them later."""

import time
from typing import Protocol

import torch


class Moment(Protocol):
    """A point in the work of a device."""

    def until(self, later: "Moment") -> float:
        """Seconds from here to a later one of the same device; waits until the device is there."""
        ...


class Instant:
    """A point in the work of the host, which does everything at once."""

    def __init__(self) -> None:
        self.time = time.perf_counter()

    def until(self, later: Moment) -> float:
        assert isinstance(later, Instant)
        return later.time - self.time


class Event:
    """A point in the work that the current stream of a GPU was asked for; to note it, nobody waits."""

    def __init__(self) -> None:
        self.event = torch.cuda.Event(enable_timing=True)
        self.event.record()

    def until(self, later: Moment) -> float:
        assert isinstance(later, Event)
        later.event.synchronize()
        return self.event.elapsed_time(later.event) / 1000


def moment(device: torch.device) -> Moment:
    """What was asked of a device up to here; of a GPU, what its current stream was asked for."""
    return Event() if device.type == "cuda" else Instant()


def now(device: torch.device) -> float:
    """Seconds of a clock, read when everything that this process asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
