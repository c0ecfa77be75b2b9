"""Measures seconds of work on a device: a GPU queues work and does it later."""

import time
from typing import Protocol

import torch


class Timestamp(Protocol):
    """A point in time in the work of a device."""

    def seconds_until(self, later: "Timestamp") -> float:
        """Seconds from this point to a later one of the same device; waits until the device has reached it."""
        ...


class HostTimestamp:
    """A point in time in the work of the host, which runs synchronously."""

    def __init__(self) -> None:
        self.time = time.perf_counter()

    def seconds_until(self, later: Timestamp) -> float:
        assert isinstance(later, HostTimestamp)
        return later.time - self.time


class CudaTimestamp:
    """A point in the work queued on the current CUDA stream; recording it does not wait."""

    def __init__(self) -> None:
        self.event = torch.cuda.Event(enable_timing=True)
        self.event.record()

    def seconds_until(self, later: Timestamp) -> float:
        assert isinstance(later, CudaTimestamp)
        later.event.synchronize()
        return self.event.elapsed_time(later.event) / 1000


def record_timestamp(device: torch.device) -> Timestamp:
    """Records the present point in the work of a device; for a GPU, in that of its current stream."""
    return CudaTimestamp() if device.type == "cuda" else HostTimestamp()


def synchronized_time(device: torch.device) -> float:
    """Seconds of a clock, read after everything that this process queued on the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


class Stopwatch:
    """Seconds of each stage of a round on a device."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.start = device, record_timestamp(device)
        self.ends: list[tuple[str, Timestamp]] = []

    def lap(self, stage: str) -> None:
        """Assigns the time since the last lap to a stage."""
        self.ends.append((stage, record_timestamp(self.device)))

    @property
    def laps(self) -> dict[str, float]:
        """Seconds of each stage; waits until the last one is over."""
        seconds: dict[str, float] = {}
        last = self.start
        for stage, end in self.ends:
            seconds[stage] = seconds.get(stage, 0.0) + last.seconds_until(end)
            last = end
        return seconds
