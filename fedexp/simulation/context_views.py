"""The members of a round's context by topic: `ctx.clients_data`, `ctx.fleet` and the others.

`fedexp.parts.context` says what each of them means.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch

from fedexp.core.client_rows import positions_of
from fedexp.core.random_streams import stream, streams
from fedexp.core.values import SERVER, Canaries, Plan, Uploads, Weights
from fedexp.parts.context import Context
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.pacing.contract import Arrivals
from fedexp.parts.workload import Workload
from fedexp.simulation.local_task import make_task, run_task
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_all
from fedexp.training.client.examples import Examples
from fedexp.training.workers.pool import FINE_TUNING, Work


class ExtraMessages:
    """Counts the models that clients evaluate or fine-tune in one round besides training, for traffic and clock.

    `arrivals` is who was sent which model to train, as soon as that is known.
    """

    def __init__(self) -> None:
        self.reported_losses = 0
        self.fine_tuned = 0
        self.arrivals: Arrivals | None = None
        self._evaluators: dict[
            int, tuple[Weights, list[np.ndarray]]
        ] = {}  # by identity of the model, which is kept alive

    def sent_for_evaluation(self, weights: Weights, owner: np.ndarray) -> None:
        """Notes that the clients `owner [n]` report their loss of a model."""
        self.reported_losses += len(owner)
        self.sent_to_judge(weights, owner)

    def sent_to_judge(self, weights: Weights, owner: np.ndarray) -> None:
        """Notes that the clients `owner [n]` evaluate a model, of which they need not report."""
        self._evaluators.setdefault(id(weights), (weights, []))[1].append(owner)

    @property
    def evaluators(self) -> tuple[np.ndarray, ...]:
        """The clients `[n]`, ascending, that evaluated each of the models."""
        return tuple(np.unique(np.concatenate(owners)) for _, owners in self._evaluators.values())


@dataclass(frozen=True)
class ClientQueries:
    """Queries of the clients' data, and models that clients evaluate or fine-tune besides training."""

    _world: World
    _ctx: Context
    _extra_messages: ExtraMessages

    def class_counts(self, owner: np.ndarray) -> np.ndarray:
        classes = len(self._world.class_names)
        counts = [np.bincount(self._world.labels[shard], minlength=classes) for shard in self._ctx.plan(owner).shards]
        return np.array(counts, dtype=np.int64).reshape(len(owner), classes)

    def labels(self, examples: np.ndarray) -> np.ndarray:
        return self._world.labels[examples]

    def groups(self, owner: np.ndarray) -> np.ndarray | None:
        return None if self._world.groups is None else self._world.groups[owner]

    def losses_of(self, weights: Weights, plan: Plan, power: int = 1) -> np.ndarray:
        self._extra_messages.sent_for_evaluation(weights, plan.owner)
        return self._mean_losses(weights, plan, power)

    def judge(self, rows: torch.Tensor, holder: np.ndarray, owner: np.ndarray) -> np.ndarray:
        plan = Plan(owner, tuple(self._world.judging.shard(client) for client in owner.tolist()))
        losses = np.full((len(owner), len(rows)), np.nan)
        for number, (row, client) in enumerate(zip(rows, holder.tolist(), strict=True)):
            weights = Weights(row, self._world.layout)
            losses[:, number] = self._mean_losses(weights, plan, 1)
            self._extra_messages.sent_to_judge(weights, owner[(owner != client) & (plan.sizes > 0)])
        return losses

    def _mean_losses(self, weights: Weights, plan: Plan, power: int) -> np.ndarray:
        index = np.concatenate([*plan.shards, np.zeros(0, np.int64)])
        row = np.repeat(np.arange(len(plan.sizes)), plan.sizes)
        sums = np.bincount(row, self._ctx.audit.example_losses(weights, index) ** power, len(plan.sizes))
        return np.divide(sums, plan.sizes, out=np.full(len(sums), np.nan), where=plan.sizes > 0)

    def fine_tune(self, row: torch.Tensor, owner: np.ndarray, number: int, epochs: int | None) -> torch.Tensor:
        self._extra_messages.fine_tuned += len(owner)
        local = self._world.exp.local
        rule = local if epochs is None else replace(local, epochs=epochs, steps=None)
        later_ctx: Context = replace(cast(Any, self._ctx), round=number)
        rows = train_apart(self._world, later_ctx, row, owner, rule, "fine_tune")
        return torch.where(rows.isfinite().all(dim=1, keepdim=True), rows, row)

    def train_wrapped(
        self, rule: Workload, rows: torch.Tensor, plan: Plan, *name: str | int
    ) -> tuple[torch.Tensor, np.ndarray]:
        beside = self._world.with_rule(cast(LocalRule, rule))
        ctx: Context = replace(cast(Any, self._ctx), _world=beside)
        out = run_apart(beside, ctx, rows, plan, [beside.exp.local] * len(plan.owner), name)
        return out[:, :-2], out[:, -1].cpu().double().numpy()


def train_apart(
    world: World, ctx: Context, row: torch.Tensor, owner: np.ndarray, rule: LocalRule, name: str
) -> torch.Tensor:
    """What these clients make of one model `[D]`, `[n, D]`, by batches from the stream `name` of the context's round.

    Columns that never leave a client stay as they are in the model.
    """
    rules = [rule.with_drawn_epochs(client, ctx.rng) for client in owner.tolist()]
    rows = run_apart(world, ctx, row.expand(len(owner), -1), ctx.plan(owner), rules, (name,))[:, : len(row)]
    private = torch.from_numpy(ctx.traffic.private_columns).to(rows.device)
    rows[:, private] = row[private]
    return rows


def run_apart(
    world: World, ctx: Context, rows: torch.Tensor, plan: Plan, rules: list[LocalRule], name: tuple[str | int, ...]
) -> torch.Tensor:
    """What the trainer of a world makes of a plan's `rows [C, W]`, with losses behind, by batches of this stream."""
    draws = streams(world.exp.seed, ctx.round, *name, owner=plan.owner)
    batches = draw_all(rules, plan.shards, world.labels, draws)
    task = make_task(world.exp, rows, plan, batches, {}, ctx)
    return run_task(world, task, 2, world.trainer.run, FINE_TUNING)


def received_losses(queries: ClientQueries, present: Weights, owner: np.ndarray, power: int) -> np.ndarray:
    """Mean of loss**power, [n], of the model that each client was sent; of the present one where it was sent none.

    Who trains on the model that it was sent has received it, and just tells its loss.
    """
    arrivals, losses, begun = queries._extra_messages.arrivals, np.empty(len(owner)), np.zeros(len(owner), np.int64)
    if arrivals is not None:
        trains = np.isin(owner, arrivals.plan.owner)
        begun[trains] = arrivals.begun[positions_of(owner[trains], arrivals.plan.owner)]
        queries._extra_messages.reported_losses += int(trains.sum())
    for number in np.unique(begun).tolist():
        chosen = begun == number
        plan = queries._ctx.plan(owner[chosen])
        if arrivals is None or not number:
            losses[chosen] = queries.losses_of(present, plan, power)
        else:
            losses[chosen] = queries._mean_losses(arrivals.versions.get(number, present), plan, power)
    return losses


@dataclass(frozen=True)
class ValidationQueries:
    """The server's validation data."""

    _world: World

    @property
    def size(self) -> int:
        return 0 if self._world.validation is None else len(self._world.validation)

    def losses(self, rows: torch.Tensor, examples: np.ndarray | None = None) -> np.ndarray:
        part = self._examples if examples is None else self._examples.subset(examples)
        return self._mean_losses(None, rows, part, len(part))

    def mixture_losses(self, mix: np.ndarray, rows: torch.Tensor, positions: range | None = None) -> np.ndarray:
        positions, parts = range(self.size) if positions is None else positions, self._world.validation_parts
        if positions not in parts:
            order = stream(self._world.exp.seed, "validation_order").permutation(self.size)
            index = np.sort(order[positions.start : positions.stop])
            parts[positions] = self._examples if len(index) == self.size else self._examples.subset(index)
        return self._mean_losses(torch.from_numpy(mix).to(rows.device), rows, parts[positions], self.size)

    def _mean_losses(self, mix: torch.Tensor | None, rows: torch.Tensor, examples: Examples, total: int) -> np.ndarray:
        scorer = self._world.mixture_scorer
        work = scorer.work(mix, rows, examples, total)
        self._world.pool.execute(work)
        return scorer.means(work, len(rows if mix is None else mix), len(examples)).cpu().numpy()

    @property
    def _examples(self) -> Examples:
        assert self._world.validation is not None
        return self._world.validation

    def shares(self, uploads: Uploads) -> np.ndarray:
        return self._world.exp.aggregator.shares(uploads).cpu().numpy()


@dataclass(frozen=True)
class PublicQueries:
    """The server's public data."""

    _world: World
    _ctx: Context

    @property
    def size(self) -> int:
        return 0 if self._world.public is None else len(self._world.public)

    def train(self, row: torch.Tensor) -> torch.Tensor:
        rule = self._world.exp.local
        return train_apart(self._world, self._ctx, row, np.array([SERVER]), rule, "public_training")[0]

    def outputs(self, rows: torch.Tensor, limit: int = 1000) -> torch.Tensor:
        world = self._world
        assert world.public is not None
        order = stream(world.exp.seed, "public_outputs").permutation(self.size)
        models = [Weights(row, world.layout) for row in rows]
        work = world.scorer.outputs_work(models, world.public.subset(np.sort(order[:limit])), len(world.class_names))
        world.pool.execute(work)
        return work.out


@dataclass(frozen=True)
class AuditQueries:
    """What a privacy audit may use; gradients are those of the model that the round began with."""

    _world: World
    _received: Weights

    @property
    def canaries(self) -> Canaries:
        return self._world.canaries

    @property
    def delta(self) -> float:
        return self._world.exp.privacy.required_delta

    def example_losses(self, weights: Weights, index: np.ndarray) -> np.ndarray:
        train = self._world.train
        work = self._world.scorer.losses_work(weights, train, train.to_device(index))
        self._world.pool.execute(work)
        return work.out[:, 0].cpu().double().numpy()

    def gradients(self, index: np.ndarray) -> torch.Tensor:
        return self._world.gradients.per_example(self._received.flat, index)

    def gradient_sum(self, index: np.ndarray) -> torch.Tensor:
        return self._world.gradients.sum(self._received.flat, index)

    def run_jobs(self, out: torch.Tensor, jobs: list[tuple[np.ndarray, Callable[[], torch.Tensor]]]) -> None:
        self._world.pool.execute(Work(out, jobs))
