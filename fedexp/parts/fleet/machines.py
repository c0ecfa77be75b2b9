"""The virtual clock of fleets of machines (FedCS, Nishio & Yonetani 2019, with the selection thesis' numbers).

A round consists of `overhead_s`, the distribution of the model at the slowest participant's bandwidth, training in
parallel, and uploads one after another. The seconds are those of trainable entries, 4 bytes each, and as many again for
each row that the local rule adds; statistics of a model, such as those of batch normalisation, travel too and count as
bytes, not as time. Codec and aggregator decide the size of uploads. No real time passes. With `link=own` each client
receives, trains and sends by itself.

If clients evaluate models before they train, that comes first and does not count against the deadline. All these models
are sent at the slowest such client's bandwidth. The clients pass their examples forward, which takes a third of the
time of training on them, and send their losses one after another (with `link=own` each by itself). They need not
receive the model again. Where participants tell the loss of the model that they train, they pass their examples forward
once more than they train; the time of that answer, 32 bits behind an upload, is not counted.

A client drops out of a round with probability `dropout`: it receives the model, its upload never arrives, and the next
in the queue uploads instead. With `dropout_in` it breaks off in the middle, after a uniform share of its training, of
its upload, or of both; so does a client that goes away (`availability`). The server waits until then, and what the
client did is lost. With a deadline (the round's own, or `deadline_s`) uploads that would end after it are lost, and the
round ends there. A round without participants, or from which nothing is heard, lasts until its deadline; without a
deadline the server waits for `idle_s`. Where clients train on while the server steps there are no deadlines, and the
server waits for `idle_s` if nobody trains. Legend: n clients.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from fedexp.parts import Context, Fleet, Fraction, Journeys, Memory, Plan, Positive, Range, Resources, Uploads, arrivals

FORWARD = 1 / 3  # share of the time of training on an example
ANSWER_BITS = 32  # of a loss
IDLE_S = 180.0  # of a round without participants, unless something else is asked for


@dataclass(frozen=True)
class RoundEnd:
    """Which clients delivered, bool `[n]`, which were too late, bool `[n]`, and the seconds of the round."""

    arrived: np.ndarray
    late: np.ndarray
    seconds: float


def simulate_round(
    resources: Resources,
    stays_s: np.ndarray,
    deadline_s: float | None,
    idle_s: float,
    unreceived: np.ndarray | float = 1.0,
    *,
    is_shared: bool = True,
) -> RoundEnd:
    """Simulates one round of clients in the order of their uploads.

    After `stays_s [n]` a client goes, if it has not delivered (infinity: it stays; -infinity: nobody waits for it).
    `unreceived [n]` is the share of what the server sends that a client has not received yet.
    """
    present = stays_s > -np.inf
    received_s = resources.overhead_s + resources.download_s * unreceived
    start = float(received_s.max(initial=resources.overhead_s))
    limit = np.inf if deadline_s is None else deadline_s
    times = np.full(len(present), np.inf)
    if is_shared:
        queue = resources.where(present)
        times[present] = start + arrivals(queue.update_s, queue.upload_s, stays_s[present] - start)
    else:
        times[present] = (received_s + resources.update_s + resources.upload_s)[present]
        times[times > stays_s] = np.inf
    ends = np.where(present, np.minimum(times, stays_s), -np.inf)  # of what the server waits for
    late = ends > limit
    arrived = np.isfinite(times) & (times <= limit)
    end_s = float(ends.max(initial=0.0 if np.isfinite(ends).any() else start + idle_s))
    if late.any() or not np.isfinite(ends).any():
        return RoundEnd(arrived, late, end_s if deadline_s is None else deadline_s)
    return RoundEnd(arrived, late, end_s)


def has_judged(owner: np.ndarray, ctx: Context) -> np.ndarray:
    """Which of the clients `owner [n]` have received a model in this round to evaluate it, bool [n]."""
    evaluators = ctx.fleet.evaluators
    return np.isin(owner, np.concatenate(evaluators)) if evaluators else np.zeros(len(owner), bool)


def unreceived_share(owner: np.ndarray, ctx: Context) -> np.ndarray:
    """The share of what the server sends that the clients `owner [n]` have not received in this round yet, `[n]`."""
    return np.where(has_judged(owner, ctx), 1 - 32.0 * ctx.traffic.sent_entries / ctx.traffic.download_bits, 1.0)


def answer_passes(owner: np.ndarray, ctx: Context) -> np.ndarray:
    """Epochs' worth of time `[n]` in which the clients `owner [n]` find the loss of the model that they train."""
    return FORWARD * (ctx.fleet.reports_losses & ~has_judged(owner, ctx))


def evaluation_seconds(
    resources: Resources, models: np.ndarray, examples: np.ndarray, model_bits: float, *, is_shared: bool = True
) -> float:
    """Seconds in which clients receive `models [n]` models of `model_bits` each, evaluate them and report losses.

    `resources` and `examples [n]` are those of the clients.
    """
    received_s = models * model_bits / (resources.bandwidth * 1e6)
    evaluation_s = models * examples * FORWARD / resources.speed
    answer_s = ANSWER_BITS * models / (resources.uplink * 1e6)
    if not is_shared:
        return float((received_s + evaluation_s + answer_s).max(initial=0.0))
    order = np.argsort(evaluation_s, kind="stable")
    reply_s = arrivals(evaluation_s[order], answer_s[order])
    return float(received_s.max(initial=0.0) + reply_s.max(initial=0.0))


class Machines(Fleet):
    """The clock of clients whose `resources` an option gives. Times are simulated seconds."""

    dropout: Annotated[float, Fraction] = 0.0
    dropout_in: Literal["training", "upload", "both"] | None = None
    deadline_s: Annotated[float, Positive] | None = None
    overhead_s: Annotated[float, Range(0)] = 0.0
    link: Literal["shared", "own"] = "shared"
    idle_s: Annotated[float, Positive] = IDLE_S

    simulates = True

    @property
    def loses_clients(self) -> bool:
        return self.dropout > 0

    @property
    def breaks_off_sending(self) -> bool:
        return self.dropout > 0 and self.dropout_in in ("upload", "both")

    @property
    def idle_keys(self) -> dict[str, str]:
        return {"dropout_in": "dropout"} if self.dropout_in and not self.dropout else {}

    @property
    def changes_idle_s(self) -> bool:
        return self.idle_s != IDLE_S

    @property
    def shares_link(self) -> bool:
        return self.link == "shared"

    def journeys(self, owner: np.ndarray, ctx: Context) -> Journeys:
        resources = self.resources(owner, ctx)
        received_s = self.overhead_s + resources.download_s * unreceived_share(owner, ctx)
        breaks_s = received_s + self._working_s(owner, resources, ctx)
        return Journeys(received_s, resources.update_s, resources.upload_s, self._vanishes(owner, ctx), breaks_s)

    def completes(self, owner: np.ndarray, ctx: Context) -> np.ndarray:
        resources = self.resources(owner, ctx)
        begin_s = self._begin_s(resources, unreceived_share(owner, ctx))
        goes_s = ctx.fleet.stays_s(owner) - self.judging_s(ctx)
        return np.minimum(begin_s + self._working_s(owner, resources, ctx), goes_s) >= begin_s + resources.update_s

    def judging_s(self, ctx: Context) -> float:
        evaluators, models = np.unique(np.concatenate([*ctx.fleet.evaluators, np.arange(0)]), return_counts=True)
        if not len(evaluators):
            return 0.0
        resources, model_bits = self.resources(evaluators, ctx), 32.0 * ctx.traffic.sent_entries
        examples = ctx.fleet.judged_examples(evaluators)
        return evaluation_seconds(resources, models, examples, model_bits, is_shared=self.shares_link)

    def deliver(self, uploads: Uploads, plan: Plan, memory: Memory, ctx: Context) -> tuple[Uploads, float, Memory]:
        """The uploads that arrive in time; the server's own row always does."""
        clients = np.flatnonzero(uploads.owner >= 0)
        deadlines = [seconds for seconds in (plan.deadline_s, self.deadline_s) if seconds is not None]
        owner = uploads.owner[clients]
        limit, unreceived = min(deadlines, default=None), unreceived_share(owner, ctx)
        resources, evaluation_s = self.resources(owner, ctx), self.judging_s(ctx)
        breaks_s = self._begin_s(resources, unreceived) + self._working_s(owner, resources, ctx)
        stays_s = np.minimum(breaks_s, ctx.fleet.stays_s(owner) - evaluation_s)
        stays_s[self._vanishes(owner, ctx)] = -np.inf
        outcome = simulate_round(resources, stays_s, limit, self.idle_s, unreceived, is_shared=self.shares_link)
        keep = np.ones(len(uploads.owner), dtype=bool)
        keep[clients] = outcome.arrived
        late, lost = int(outcome.late.sum()), int((~outcome.arrived).sum())
        columns = {"seconds": evaluation_s + outcome.seconds, "late": late, "dropped_out": lost - late}
        return uploads.where(keep), evaluation_s + outcome.seconds, {**memory, "columns": columns}

    def _begin_s(self, resources: Resources, unreceived: np.ndarray) -> np.ndarray | float:
        """When clients that are asked together begin to train, `[n]` or all, in seconds of the round."""
        received_s = self.overhead_s + resources.download_s * unreceived
        return received_s.max(initial=0.0) if self.shares_link else received_s

    def _vanishes(self, owner: np.ndarray, ctx: Context) -> np.ndarray:
        """Which of the clients `owner [n]` drop out so that nothing is ever heard of them, bool [n]."""
        return self._dropouts(owner, ctx)[0] if self.dropout_in is None else np.zeros(len(owner), bool)

    def _dropouts(self, owner: np.ndarray, ctx: Context) -> tuple[np.ndarray, np.ndarray]:
        """Which of the clients `owner [n]` drop out in this round, bool [n], and after which share of it, [n]."""
        if self.dropout == 0:  # nothing need be drawn
            return np.zeros(len(owner), bool), np.ones(len(owner))
        draws = ctx.fleet.draws("fleet", owner=owner)
        return draws[:, 2] < self.dropout, draws[:, 3]

    def _working_s(self, owner: np.ndarray, resources: Resources, ctx: Context) -> np.ndarray:
        """Seconds `[n]` from receiving the model on after which a client breaks off; infinity where it does not."""
        if self.dropout_in is None:
            return np.full(len(owner), np.inf)
        drops_out, share = self._dropouts(owner, ctx)
        training_s, upload_s = resources.update_s, resources.upload_s
        moments = {
            "training": share * training_s,
            "upload": training_s + share * upload_s,
            "both": share * (training_s + upload_s),
        }
        return np.where(drops_out, moments[self.dropout_in], np.inf)
