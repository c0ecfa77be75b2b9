"""A simulated fleet and its virtual clock (FedCS, Nishio & Yonetani 2019, with the selection thesis' numbers).

Once a client: mean bandwidth (the same for all) and mean speed ~ U(low, high) examples a second. Each round both jitter
by a normal law of std `jitter_std` times the mean, cut at +- `jitter_range` times the mean. A round lasts the
distribution of the model at the slowest participant's bandwidth, then training in parallel and uploads one after
another. Only trainable entries are sent, 4 bytes each; 1 Mbit = 1e6 bit. Nothing sleeps.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedexp.context import Context
from fedexp.roles import Fleet
from fedexp.spec import ConfigError, Positive, Range
from fedexp.values import Memory, Uploads


def truncated_normal(uniform: np.ndarray, mean: np.ndarray, std: float, half_width: float) -> np.ndarray:
    """Normal draws of std `std * mean`, cut at +- `half_width * mean`, from uniform draws by the inverse law."""
    from scipy.special import ndtr, ndtri

    if std == 0 or half_width == 0:
        return mean
    edge = ndtr(-half_width / std)
    return mean * (1 + std * ndtri(edge + uniform * (1 - 2 * edge)))


def sequential_seconds(update: np.ndarray, upload: np.ndarray) -> float:
    """Seconds until the last of the uploads, one after another in the given order, has arrived.

    `update` and `upload` are seconds of training and of sending; a client that is still training when its turn comes
    is waited for: Theta_i = Theta_{i-1} + t_UL + max(0, t_UD - Theta_{i-1}).
    """
    elapsed = 0.0
    for training, sending in zip(update.tolist(), upload.tolist(), strict=True):
        elapsed += sending + max(0.0, training - elapsed)
    return elapsed


@dataclass(frozen=True, kw_only=True)
class Simulated(Fleet):
    """Bandwidths in Mbit/s, speeds in examples/s."""

    bandwidth_mbit: Annotated[float, Positive] = 1.4
    speed_low: Annotated[float, Positive] = 10.0
    speed_high: Annotated[float, Positive] = 100.0
    jitter_std: Annotated[float, Range(0)] = 0.1
    jitter_range: Annotated[float, Range(0, 1, high_open=True)] = 0.2

    simulates = True

    def check(self) -> None:
        if self.speed_high < self.speed_low:
            raise ConfigError(
                f"Simulated.speed_high must be at least speed_low={self.speed_low:g}, got {self.speed_high:g}"
            )

    def deliver(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, float, Memory]:
        seconds = self._seconds(uploads, ctx) if len(uploads.owner) else 0.0
        return uploads, seconds, {**memory, "columns": {"seconds": seconds}}

    def _seconds(self, uploads: Uploads, ctx: Context) -> float:
        clients = uploads.owner.tolist()
        mean = np.array([ctx.run_rng("fleet", client).uniform(self.speed_low, self.speed_high) for client in clients])
        draws = np.array([ctx.rng("fleet", client).random(2) for client in clients])
        speed = truncated_normal(draws[:, 0], mean, self.jitter_std, self.jitter_range)
        link = np.full(len(clients), self.bandwidth_mbit)
        bandwidth = truncated_normal(draws[:, 1], link, self.jitter_std, self.jitter_range)
        upload = ctx.parameters * 32 / (bandwidth * 1e6)
        update = ctx.epochs(uploads.examples) * uploads.examples / speed
        return float(upload.max()) + sequential_seconds(update, upload)
