"""A simulated fleet: bandwidths, speeds and a virtual clock, that of `machines.py`.

Each client has a mean bandwidth (the same for all) and a mean speed ~ U(low, high) examples/s. In each round both vary
by a normal distribution of std `jitter_std` times the mean, cut at +- `jitter_range` times the mean; or both are read
from a trace.

With `classes` each client is a device of one of them, drawn by their shares, with the speed and, if it is given, the
bandwidths down and up of its class. With `speed_spread` its mean speed is times exp(`speed_spread` z), z ~ N(0, 1): a
class's speed is the median of a log-normal distribution. What clients send travels at `upload_mbit`, if it is given,
and varies together with what they receive. Legend: N clients, n of them.
"""

from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from fedexp.parts import ConfigError, Context, Positive, Range, Resources
from fedexp.parts.fleet.machines import Machines, answer_passes
from fedexp.parts.fleet.trace import Trace, read_trace


def truncated_normal(uniform: np.ndarray, mean: np.ndarray, std: float, half_width: float) -> np.ndarray:
    """Normal draws `[n]` of std `std * mean`, cut at +- `half_width * mean`, from `uniform [n]` draws; `mean [n]`."""
    from scipy.special import ndtr, ndtri

    if std == 0 or half_width == 0:
        return mean
    edge = ndtr(-half_width / std)
    return mean * (1 + std * ndtri(edge + uniform * (1 - 2 * edge)))


class Simulated(Machines):
    """Bandwidths in Mbit/s, speeds in examples/s."""

    bandwidth_mbit: Annotated[float, Positive] = 1.4
    upload_mbit: Annotated[float, Positive] | None = None
    speed_low: Annotated[float, Positive] = 10.0
    speed_high: Annotated[float, Positive] = 100.0
    speed_spread: Annotated[float, Range(0)] = 0.0
    classes: tuple[tuple[Annotated[float, Positive], ...], ...] | None = None
    jitter_std: Annotated[float, Range(0)] = 0.1
    jitter_range: Annotated[float, Range(0, 1, high_open=True)] = 0.2
    trace: Path | None = None

    def check(self) -> None:
        if self.speed_high < self.speed_low:
            raise ConfigError(
                f"Simulated.speed_high must be at least speed_low={self.speed_low:g}, got {self.speed_high:g}"
            )
        self._check_classes()
        idle = {"classes": self.classes, "upload_mbit": self.upload_mbit, "speed_spread": self.speed_spread or None}
        if self.trace is not None and (words := [name for name, value in idle.items() if value is not None]):
            raise ConfigError(
                f"Simulated.{words[0]} does nothing with trace={self.trace}, which has every client's rates; leave it "
                "out (the file may have a column upload_mbit)"
            )

    @property
    def idle_keys(self) -> dict[str, str]:
        idle = {}
        if bool(self.jitter_std) != bool(self.jitter_range):  # either at 0 turns both off
            idle |= {"jitter_std": "jitter_range"} if self.jitter_std else {"jitter_range": "jitter_std"}
        if self.classes is not None:
            links = ("bandwidth_mbit", "upload_mbit") if all(len(row) == 4 for row in self.classes) else ()
            idle |= dict.fromkeys(("speed_low", "speed_high", *links), "classes")
        if self.trace is not None:
            idle |= dict.fromkeys(("bandwidth_mbit", "speed_low", "speed_high", "jitter_std", "jitter_range"), "trace")
        changed = {key: cause for key, cause in idle.items() if getattr(self, key) != getattr(Simulated, key)}
        return super().idle_keys | changed

    def _check_classes(self) -> None:
        for row in self.classes or ():
            if len(row) not in (2, 4):
                raise ConfigError(
                    "Simulated.classes must be a list of [share, speed] or [share, speed, download_mbit, upload_mbit], "
                    f"got {list(row)}"
                )
        shares = sum(row[0] for row in self.classes or ())
        if self.classes is not None and abs(shares - 1) > 1e-6:
            raise ConfigError(f"Simulated.classes must have shares that add up to 1, got {shares:g}")

    def refuse(self, clients: int | None) -> None:
        if self.trace is not None and clients is not None:
            self._trace.require(clients)

    def resources(self, owner: np.ndarray, ctx: Context) -> Resources:
        sizes = ctx.sizes[owner]
        bandwidth, speed, uplink = self._rates(owner, ctx) if self.trace is None else self._trace.at(owner, ctx.round)
        work = (ctx.fleet.epochs(sizes, owner) + answer_passes(owner, ctx)) * sizes
        bits, ratio = ctx.traffic.download_bits, ctx.traffic.upload_ratio
        return Resources(bandwidth, speed, work, bits, self.overhead_s, ratio, uplink)

    def _rates(self, owner: np.ndarray, ctx: Context) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Bandwidth, speed and bandwidth of uploads (None: the same) of each client in this round, `[n]`."""
        link, uplink, mean = self._means(owner, ctx)
        draws = ctx.fleet.draws("fleet", owner=owner)
        bandwidth = truncated_normal(draws[:, 1], link, self.jitter_std, self.jitter_range)
        speed = truncated_normal(draws[:, 0], mean, self.jitter_std, self.jitter_range)
        if uplink is None:
            return bandwidth, speed, None
        return bandwidth, speed, truncated_normal(draws[:, 1], uplink, self.jitter_std, self.jitter_range)

    def _means(self, owner: np.ndarray, ctx: Context) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """The mean bandwidths, down and up, and the mean speed of each client, `[n]`."""
        from scipy.special import ndtri

        draws = ctx.fleet.run_draws("fleet", owner=owner)
        mean = self.speed_low + (self.speed_high - self.speed_low) * draws[:, 0]
        link = np.full(len(owner), self.bandwidth_mbit)
        uplink = None if self.upload_mbit is None else np.full(len(owner), self.upload_mbit)
        if self.classes is not None:
            edges = np.cumsum([row[0] for row in self.classes])[:-1]
            number = np.searchsorted(edges, draws[:, 1], side="right")
            mean = np.array([row[1] for row in self.classes])[number]
            up_mbit = self.bandwidth_mbit if self.upload_mbit is None else self.upload_mbit
            usual = (self.bandwidth_mbit, up_mbit)
            link, uplink = np.array([row[2:] or usual for row in self.classes])[number].T
        if self.speed_spread:
            mean = mean * np.exp(self.speed_spread * ndtri(draws[:, 2]))
        return link, uplink, mean

    @cached_property
    def _trace(self) -> Trace:
        assert self.trace is not None
        return read_trace(self.trace)
