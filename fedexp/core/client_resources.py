"""What clients' machines and links can do in one round, in simulated seconds.

Source: FedCS (Nishio & Yonetani 2019, arXiv 1804.08333, sections III-C and IV-A) with the selection thesis' units:
speeds in examples/s, bandwidths in Mbit/s, 1 Mbit = 1e6 bit. Models are sent down to all participants at once, at the
rate of the slowest; clients train in parallel and send one after another.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Resources:
    """This round's bandwidth `[n]` (Mbit/s) and speed `[n]` (examples/s) of some clients, for a model of so many bits.

    `work [n]` is how many examples each would pass through its model: epochs times examples. `overhead_s` is spent in
    every round on requests, selection and aggregation (T_cs + T_agg). An upload is `upload_ratio` times as large as the
    model that is sent down, and travels at `upload_bandwidth [n]` (None: at `bandwidth`).
    """

    bandwidth: np.ndarray
    speed: np.ndarray
    work: np.ndarray
    bits: float
    overhead_s: float = 0.0
    upload_ratio: float = 1.0
    upload_bandwidth: np.ndarray | None = None

    @property
    def uplink(self) -> np.ndarray:
        """The bandwidth `[n]` of what clients send, Mbit/s."""
        return self.bandwidth if self.upload_bandwidth is None else self.upload_bandwidth

    @cached_property
    def update_s(self) -> np.ndarray:
        """Seconds of training `[n]`, t_UD."""
        return self.work / self.speed

    @cached_property
    def download_s(self) -> np.ndarray:
        """Seconds `[n]` that each client needs to receive a model when it is the only one."""
        return self.bits / (self.bandwidth * 1e6)

    @cached_property
    def upload_s(self) -> np.ndarray:
        """Seconds `[n]` to send an upload, t_UL."""
        if self.upload_bandwidth is None:
            return self.download_s * self.upload_ratio
        return self.bits * self.upload_ratio / (self.upload_bandwidth * 1e6)

    @property
    def distribution_s(self) -> float:
        """Seconds until all of these clients have received the model, T_d; 0 without clients."""
        return float(self.download_s.max(initial=0.0))

    def where(self, keep: np.ndarray) -> "Resources":
        """The resources of the clients that `keep` names (a mask `[n]`, or positions in any order)."""
        columns = ("bandwidth", "speed", "work", *(["upload_bandwidth"] if self.upload_bandwidth is not None else []))
        return replace(self, **{name: getattr(self, name)[keep] for name in columns})


@dataclass(frozen=True)
class Journeys:
    """How long some clients would take from being asked to having delivered, each by itself: `[n]` seconds each.

    What is `lost [n]` never arrives, though its time passes. Who breaks off does so `breaks_s [n]` seconds after it was
    asked, and its work is lost (infinity: it does not; None: nobody does).
    """

    download_s: np.ndarray
    training_s: np.ndarray
    upload_s: np.ndarray
    lost: np.ndarray
    breaks_s: np.ndarray | None = None


def arrivals(update_s: np.ndarray, upload_s: np.ndarray, stays_s: np.ndarray | None = None) -> np.ndarray:
    """Seconds `[n]` after the distribution at which each upload has arrived; they are sent in the given order.

    `update_s [n]` and `upload_s [n]` are those of `Resources`. A client that still trains when its turn comes is waited
    for: Theta_i = Theta_{i-1} + t_UL + max(0, t_UD - Theta_{i-1}). A client that stays for `stays_s [n]` (None: all
    stay) and would arrive later never does: infinity. The link is free again when it goes.
    """
    stays_s = np.full(len(update_s), np.inf) if stays_s is None else stays_s
    times, elapsed = np.full(len(update_s), np.inf), 0.0
    clients = zip(update_s.tolist(), upload_s.tolist(), stays_s.tolist(), strict=True)
    for position, (training, sending, stays) in enumerate(clients):
        end = max(elapsed, training) + sending
        if end <= stays:
            times[position] = elapsed = end
        else:
            elapsed = max(elapsed, stays)
    return times
