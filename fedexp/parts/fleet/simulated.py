"""A simulated fleet and its virtual clock (FedCS, Nishio & Yonetani 2019, with the selection thesis' numbers).

Each client has a mean bandwidth (the same for all) and a mean speed ~ U(low, high) examples/s. In each round both vary
by a normal distribution of std `jitter_std` times the mean, cut at +- `jitter_range` times the mean; or both are read
from a trace. A round consists of `overhead_s`, the distribution of the model at the slowest participant's bandwidth,
training in parallel, and uploads one after another. Only trainable entries are sent, 4 bytes each, and as many again
for each row that the local rule adds; codec and aggregator decide the size of uploads. No real time passes. With
`link=own` each client receives, trains and sends by itself.

If clients evaluate models before they train, that comes first and does not count against the deadline. All these models
are sent at the slowest such client's bandwidth. The clients pass their examples forward, which takes a third of the
time of training on them, and send their losses one after another (with `link=own` each by itself). They need not
receive the model again. Where participants tell the loss of the model that they train, they pass their examples forward
once more than they train; the time of that answer, 32 bits behind an upload, is not counted.

A client drops out of a round with probability `dropout`: it receives the model, its upload never arrives, and the next
in the queue uploads instead. With a deadline (the round's own, or `deadline_s`) uploads that would end after it are
lost, and the round ends there. A round without participants or without any upload lasts until its deadline; without a
deadline the server waits for `idle_s`. Legend: n clients.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from fedexp.core.client_resources import Journeys, Resources, arrivals
from fedexp.core.errors import ConfigError
from fedexp.core.part import Fraction, Positive, Range
from fedexp.core.values import Memory, Plan, Uploads
from fedexp.parts.context import Context
from fedexp.parts.fleet.contract import Fleet
from fedexp.parts.fleet.trace import Trace, read_trace

FORWARD = 1 / 3  # share of the time of training on an example
ANSWER_BITS = 32  # of a loss


def truncated_normal(uniform: np.ndarray, mean: np.ndarray, std: float, half_width: float) -> np.ndarray:
    """Normal draws `[n]` of std `std * mean`, cut at +- `half_width * mean`, from `uniform [n]` draws; `mean [n]`."""
    from scipy.special import ndtr, ndtri

    if std == 0 or half_width == 0:
        return mean
    edge = ndtr(-half_width / std)
    return mean * (1 + std * ndtri(edge + uniform * (1 - 2 * edge)))


@dataclass(frozen=True)
class RoundEnd:
    """Which clients delivered, bool `[n]`, which were too late, bool `[n]`, and the seconds of the round."""

    arrived: np.ndarray
    late: np.ndarray
    seconds: float


def simulate_round(
    resources: Resources,
    present: np.ndarray,
    deadline_s: float | None,
    idle_s: float,
    unreceived: np.ndarray | float = 1.0,
    *,
    is_shared: bool = True,
) -> RoundEnd:
    """Simulates one round of clients in the order of their uploads; `present [n]` are those that do not drop out.

    `unreceived [n]` is the share of what the server sends that a client has not received yet.
    """
    received_s = resources.overhead_s + resources.download_s * unreceived
    start = float(received_s.max(initial=resources.overhead_s))
    limit = np.inf if deadline_s is None else deadline_s
    times = np.full(len(present), np.inf)
    if is_shared:
        times[present] = start + arrivals(resources.update_s[present], resources.upload_s[present])
    else:
        times[present] = (received_s + resources.update_s + resources.upload_s)[present]
    late = present & (times > limit)
    arrived = present & ~late
    if late.any() or not arrived.any():
        return RoundEnd(arrived, late, start + idle_s if deadline_s is None else deadline_s)
    return RoundEnd(arrived, late, float(times[arrived].max()))


def has_judged(owner: np.ndarray, ctx: Context) -> np.ndarray:
    """Which of the clients `owner [n]` have received a model in this round to evaluate it, bool [n]."""
    return np.isin(owner, np.concatenate([*ctx.fleet.evaluators, owner[:0]]))


def unreceived_share(owner: np.ndarray, ctx: Context) -> np.ndarray:
    """The share of what the server sends that the clients `owner [n]` have not received in this round yet, `[n]`."""
    return np.where(has_judged(owner, ctx), 1 - 32.0 * ctx.traffic.sent_entries / ctx.traffic.download_bits, 1.0)


def evaluation_seconds(
    resources: Resources, models: np.ndarray, examples: np.ndarray, model_bits: float, *, is_shared: bool = True
) -> float:
    """Seconds in which clients receive `models [n]` models of `model_bits` each, evaluate them and report losses.

    `resources` and `examples [n]` are those of the clients.
    """
    bits_s = resources.bandwidth * 1e6
    evaluation_s = models * examples * FORWARD / resources.speed
    if not is_shared:
        return float((models * (model_bits + ANSWER_BITS) / bits_s + evaluation_s).max(initial=0.0))
    order = np.argsort(evaluation_s, kind="stable")
    reply_s = arrivals(evaluation_s[order], (ANSWER_BITS * models / bits_s)[order])
    return float((models * model_bits / bits_s).max(initial=0.0) + reply_s.max(initial=0.0))


class Simulated(Fleet):
    """Bandwidths in Mbit/s, speeds in examples/s, times in simulated seconds."""

    bandwidth_mbit: Annotated[float, Positive] = 1.4
    speed_low: Annotated[float, Positive] = 10.0
    speed_high: Annotated[float, Positive] = 100.0
    jitter_std: Annotated[float, Range(0)] = 0.1
    jitter_range: Annotated[float, Range(0, 1, high_open=True)] = 0.2
    dropout: Annotated[float, Fraction] = 0.0
    deadline_s: Annotated[float, Positive] | None = None
    overhead_s: Annotated[float, Range(0)] = 0.0
    link: Literal["shared", "own"] = "shared"
    idle_s: Annotated[float, Positive] = 180.0
    trace: Path | None = None

    simulates = True

    @property
    def shares_link(self) -> bool:
        return self.link == "shared"

    def check(self) -> None:
        if self.speed_high < self.speed_low:
            raise ConfigError(
                f"Simulated.speed_high must be at least speed_low={self.speed_low:g}, got {self.speed_high:g}"
            )

    def refuse(self, clients: int | None) -> None:
        if self.trace is not None and clients is not None:
            self._trace.require(clients)

    def resources(self, owner: np.ndarray, ctx: Context) -> Resources:
        sizes = ctx.sizes[owner]
        bandwidth, speed = self._rates(owner, ctx) if self.trace is None else self._trace.at(owner, ctx.round)
        answers = FORWARD * (ctx.fleet.reports_losses & ~has_judged(owner, ctx))
        work = (ctx.fleet.epochs(sizes, owner) + answers) * sizes
        return Resources(bandwidth, speed, work, ctx.traffic.download_bits, self.overhead_s, ctx.traffic.upload_ratio)

    def journeys(self, owner: np.ndarray, ctx: Context) -> Journeys:
        resources, lost = self.resources(owner, ctx), ctx.fleet.draws("fleet", owner=owner)[:, 2] < self.dropout
        download_s = self.overhead_s + resources.download_s * unreceived_share(owner, ctx)
        return Journeys(download_s, resources.update_s, resources.upload_s, lost)

    def judging_s(self, ctx: Context) -> float:
        evaluators, models = np.unique(np.concatenate([*ctx.fleet.evaluators, np.arange(0)]), return_counts=True)
        if not len(evaluators):
            return 0.0
        resources, model_bits = self.resources(evaluators, ctx), 32.0 * ctx.traffic.sent_entries
        return evaluation_seconds(resources, models, ctx.sizes[evaluators], model_bits, is_shared=self.shares_link)

    def deliver(self, uploads: Uploads, plan: Plan, memory: Memory, ctx: Context) -> tuple[Uploads, float, Memory]:
        """The uploads that arrive in time; the server's own row always does."""
        clients = np.flatnonzero(uploads.owner >= 0)
        deadlines = [seconds for seconds in (plan.deadline_s, self.deadline_s) if seconds is not None]
        owner = uploads.owner[clients]
        present = ctx.fleet.draws("fleet", owner=owner)[:, 2] >= self.dropout
        limit, unreceived = min(deadlines, default=None), unreceived_share(owner, ctx)
        resources, evaluation_s = self.resources(owner, ctx), self.judging_s(ctx)
        outcome = simulate_round(resources, present, limit, self.idle_s, unreceived, is_shared=self.shares_link)
        keep = np.ones(len(uploads.owner), dtype=bool)
        keep[clients] = outcome.arrived
        late, lost = int(outcome.late.sum()), int((~outcome.arrived).sum())
        columns = {"seconds": evaluation_s + outcome.seconds, "late": late, "dropped_out": lost - late}
        return uploads.where(keep), evaluation_s + outcome.seconds, {**memory, "columns": columns}

    def _rates(self, owner: np.ndarray, ctx: Context) -> tuple[np.ndarray, np.ndarray]:
        mean = self.speed_low + (self.speed_high - self.speed_low) * ctx.fleet.run_draws("fleet", owner=owner)[:, 0]
        draws = ctx.fleet.draws("fleet", owner=owner)
        link = np.full(len(owner), self.bandwidth_mbit)
        bandwidth = truncated_normal(draws[:, 1], link, self.jitter_std, self.jitter_range)
        return bandwidth, truncated_normal(draws[:, 0], mean, self.jitter_std, self.jitter_range)

    @cached_property
    def _trace(self) -> Trace:
        assert self.trace is not None
        return read_trace(self.trace)
