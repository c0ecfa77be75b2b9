"""Measures seconds of work on a device: a GPU queues work and does it later."""

import time

import torch


class Timestamp:
    """A point in the work of a device: of the host now, of a GPU in its current stream, for which nobody waits."""

    def __init__(self, device: torch.device) -> None:
        self.time = time.perf_counter()
        self.event = torch.cuda.Event(enable_timing=True) if device.type == "cuda" else None
        if self.event is not None:
            self.event.record()

    def seconds_until(self, later: "Timestamp") -> float:
        """Seconds from this point to a later one of the same device; waits until the device has reached it."""
        if self.event is None or later.event is None:
            return later.time - self.time
        later.event.synchronize()
        return self.event.elapsed_time(later.event) / 1000


def synchronized_time(device: torch.device) -> float:
    """Seconds of a clock, read after everything that this process queued on the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


class Stopwatch:
    """Seconds of each stage of a round on a device."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.start = device, Timestamp(device)
        self.ends: list[tuple[str, Timestamp]] = []

    def lap(self, stage: str) -> None:
        """Assigns the time since the last lap to a stage."""
        self.ends.append((stage, Timestamp(self.device)))

    @property
    def laps(self) -> dict[str, float]:
        """Seconds of each stage; waits until the last one is over."""
        seconds: dict[str, float] = {}
        last = self.start
        for stage, end in self.ends:
            seconds[stage] = seconds.get(stage, 0.0) + last.seconds_until(end)
            last = end
        return seconds
