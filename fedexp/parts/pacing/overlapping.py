"""Pacings under which clients train on while the server steps, each with the model that it was sent.

An upload is stale by the steps that the server has taken since it sent the client its model. Its factor is that of
FedAsync (Xie et al. 2019, section 5.2): `constant` 1; `polynomial` (1 + tau)^-exponent, of which FedBuff's 1 / sqrt(1 +
tau) is the exponent 1/2; `hinge` 1 up to the `knee`, then 1 / (slope (tau - knee) + 1). A fresh upload counts 1, and
none more. The factor multiplies the row, so a mean divides by the number of uploads and not by the sum of their
factors. With `normalise`, a deviation from FedBuff, it is divided by the mean of the factors, so that it divides by
their sum: where uploads count alike (`aggregator.weighting=uniform`), as in `algorithm=fedbuff`.

With `mixing=alpha` the client's whole model is mixed into the present one, w <- (1 - a) w + a x with a = alpha times
the factor, so the row that counts is a (x - w). Without it the row is the update of the model that the client was sent.

With `slow_after` the server's rate is at most 1 / (age of the oldest upload of a step) where that is more than so many
steps, as in FADAS (Wang et al. 2024, arXiv 2407.18365, section 4).

What is remembered is the whole schedule: everybody in flight, and each version of the model that somebody still holds,
once. Legend: C uploads of a step, D entries of a model.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import (
    Arrivals,
    ConfigError,
    Context,
    Memory,
    Pacing,
    Plan,
    Positive,
    Range,
    Uploads,
    Weights,
    positions_of,
)
from fedexp.parts.pacing.flight_table import flight_columns, read_flights
from fedexp.parts.pacing.timetable import Candidate, Flight, ServerStep, StepRule, run_step

CLIENT_COLUMNS = {  # of clients.csv, and of what is remembered of an upload
    "begun": "begun",
    "started_s": "started_s",
    "arrived_s": "arrives_s",
    "staleness": "age",
    "factor": "factor",
}


class OverlappingPacing(Pacing):
    """`clients` train at a time."""

    overlaps = True
    prefers_fast = True
    needs_all_rows = False

    clients: Annotated[int, Range(1)]
    staleness: Literal["constant", "polynomial", "hinge"] = "polynomial"
    exponent: Annotated[float, Range(0)] = 0.5
    slope: Annotated[float, Positive] = 10.0
    knee: Annotated[float, Range(0)] = 4.0
    max_staleness: Annotated[int, Range(0)] | None = None
    mixing: Annotated[float, Range(0, 1, low_open=True)] | None = None
    slow_after: Annotated[int, Range(0)] | None = None
    normalise: bool = False

    def check(self) -> None:
        if self.normalise and self.mixing is not None:
            raise ConfigError(
                f"{type(self).__name__}.normalise divides the factors of a step's uploads by their mean, but with "
                "mixing each is the share of a whole model; leave one of them out"
            )

    @property
    def idle_keys(self) -> dict[str, str]:
        used = {"polynomial": ("exponent",), "hinge": ("slope", "knee")}.get(self.staleness, ())
        idle = {key: getattr(OverlappingPacing, key) for key in ("exponent", "slope", "knee") if key not in used}
        return {key: "staleness" for key, usual in idle.items() if getattr(self, key) != usual}

    @property
    def slows_server(self) -> bool:
        return self.slow_after is not None

    @property
    def discards_uploads(self) -> bool:
        return self.max_staleness is not None

    @property
    def moves_uploads(self) -> bool:
        return self.mixing != 1 or self.staleness != "constant"

    @abstractmethod
    def rule(self, ctx: Context) -> StepRule:
        """When a step is over."""
        raise NotImplementedError

    def capacity(self, in_flight: int, loses: bool) -> int:
        """How many clients may begin in a step that so many are in flight before; `loses`: not all may count."""
        return max(0, self.clients - in_flight)

    def refuse(self, clients: int | None) -> None:
        if clients is not None and self.clients > clients:
            raise ConfigError(
                f"pacing.clients must be at most the number of clients, {clients}, got {self.clients}; lower it or "
                "raise scenario.clients"
            )

    def factors(self, age: np.ndarray) -> np.ndarray:
        """The factors, float64 `[C]`, of uploads that are `age [C]` steps old and arrive together."""
        factors = self._decay(age)
        return factors / factors.mean() if self.normalise and len(age) else factors

    def _decay(self, age: np.ndarray) -> np.ndarray:
        if self.staleness == "constant":
            return np.ones(len(age))
        if self.staleness == "polynomial":
            return (1.0 + age) ** -self.exponent
        return 1.0 / (self.slope * np.maximum(age - self.knee, 0.0) + 1.0)

    def most_uploads(self, participants: int) -> int:
        return self.clients

    def most_versions(self, clients: int) -> int:
        return min(self.clients, clients)

    def versions(self, memory: Memory) -> dict[str, torch.Tensor]:
        return memory.get("versions", {})

    def availability(self, memory: Memory, clients: int, loses: bool = False) -> tuple[np.ndarray, int | None]:
        busy = np.sort(memory["flight"]["owner"].numpy()) if memory else np.zeros(0, np.int64)
        return busy, self.capacity(len(busy), loses or self.max_staleness is not None)

    def due(self, plan: Plan, model: Weights, memory: Memory, ctx: Context) -> tuple[Arrivals, Memory]:
        order = ctx.rng("pacing").permutation(len(plan.owner))  # plan's says nothing, but who gets a late place does
        owner = plan.owner[order]
        importance = np.ones(len(owner)) if plan.importance is None else plan.importance[order]
        journeys = ctx.fleet.journeys(owner)
        now_s, link_s = memory.get("now_s", 0.0) + ctx.fleet.waited_s, memory.get("link_s", 0.0)
        breaks_s = np.full(len(owner), np.inf) if journeys.breaks_s is None else journeys.breaks_s
        times = (journeys.download_s, journeys.training_s, journeys.upload_s)
        columns = (owner, *times, journeys.lost, importance, breaks_s, now_s + ctx.fleet.stays_s(owner))
        candidates = map(Candidate._make, zip(*(column.tolist() for column in columns), strict=True))
        rule = replace(self.rule(ctx), choice_s=ctx.fleet.judging_s, idle_s=ctx.fleet.idle_s)
        step = run_step(rule, ctx.round, now_s, link_s, read_flights(memory), candidates)
        step.arrived.sort(key=lambda client: client.owner)
        begun = np.array([client.begun for client in step.arrived], np.int64)
        versions = {**self.versions(memory), str(ctx.round): model.flat}
        shards = {**memory.get("shards", {}), **own_shards(plan, ctx)}
        arrivals = Arrivals(
            plan_of(step.arrived, shards, ctx),
            begun,
            {number: Weights(versions[str(number)].to(model.flat), model.layout) for number in set(begun.tolist())},
            step.now_s - now_s,
            np.array(step.began, np.int64),
            step.stale,
        )
        remembered = self._remember(step, begun, versions, ctx)
        flight = step.flight if shards else []
        remembered["shards"] = {name: shards[name] for client in flight if (name := str(client.owner)) in shards}
        if self.mixing is not None:
            received = [arrivals.versions[number].flat - model.flat for number in sorted(arrivals.versions)]
            remembered["offset"] = torch.stack(received) if received else model.flat.new_empty((0, len(model.flat)))
        return arrivals, remembered

    def _remember(self, step: ServerStep, begun: np.ndarray, versions: dict[str, torch.Tensor], ctx: Context) -> Memory:
        """The memory after a step whose uploads began in the steps `begun [C]`."""
        age = ctx.round - begun
        flight, arrived = flight_columns(step.flight), flight_columns(step.arrived)
        in_use = {str(client.begun) for client in step.flight}
        return {
            "now_s": step.now_s,
            "link_s": step.link_s,
            "flight": flight,
            "versions": {number: flat for number, flat in versions.items() if number in in_use},
            "arrived": {**arrived, "age": torch.from_numpy(age), "factor": torch.from_numpy(self.factors(age))},
            "columns": {
                "staleness": float(age.mean()) if len(age) else None,
                "most_stale": int(age.max()) if len(age) else None,
                "in_flight": len(step.flight),
                "versions": len(in_use),
                "lost": step.lost,
                "too_stale": step.stale,
            },
        }

    def server_rate(self, lr: float, memory: Memory) -> float:
        oldest = memory["columns"]["most_stale"]
        return lr if self.slow_after is None or oldest is None or oldest <= self.slow_after else min(lr, 1 / oldest)

    @property
    def client_columns(self) -> tuple[str, ...]:
        return tuple(CLIENT_COLUMNS)

    def client_values(self, owner: np.ndarray, memory: Memory) -> dict[str, np.ndarray]:
        arrived = memory["arrived"]
        positions = positions_of(owner, arrived["owner"].numpy())
        return {name: arrived[column].numpy()[positions] for name, column in CLIENT_COLUMNS.items()}

    def discount(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        arrived, rows = memory["arrived"], uploads.delta
        positions = torch.from_numpy(positions_of(uploads.owner, arrived["owner"].numpy()))
        factor = arrived["factor"][positions].to(rows)[:, None]
        if self.mixing is not None:
            version = arrived["begun"].unique(return_inverse=True)[1][positions]
            rows = rows + memory["offset"].to(rows)[version.to(rows.device)]
            factor = self.mixing * factor
        return uploads.with_delta(rows * factor), memory


def own_shards(plan: Plan, ctx: Context) -> dict[str, torch.Tensor]:
    """The numbers `[S]` of the examples of each client of a plan that trains on others than all of its own."""
    full_plan = ctx.plan(plan.owner)
    chosen, everything = (np.concatenate([np.arange(0), *shards]) for shards in (plan.shards, full_plan.shards))
    if np.array_equal(plan.sizes, full_plan.sizes) and np.array_equal(chosen, everything):
        return {}  # without a look at every client
    shards = zip(plan.owner.tolist(), plan.shards, full_plan.shards, strict=True)
    return {
        str(owner): torch.from_numpy(shard.astype(np.int64))
        for owner, shard, all_examples in shards
        if not np.array_equal(shard, all_examples)
    }


def plan_of(arrived: list[Flight], shards: dict[str, torch.Tensor], ctx: Context) -> Plan:
    """The plan of clients that arrive, as it was when they began; `shards` of `[S]` each are those of `own_shards`."""
    plan = ctx.plan(np.array([client.owner for client in arrived], np.int64))
    by_client = zip(plan.owner.tolist(), plan.shards, strict=True)
    trained = tuple(shards[str(owner)].numpy() if str(owner) in shards else shard for owner, shard in by_client)
    return Plan(plan.owner, trained, np.array([client.importance for client in arrived]))
