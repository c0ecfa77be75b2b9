"""The answers to what parts ask, from the world of a run. `fedexp.parts.context` says what each of them means."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from fedexp.core.client_resources import Resources
from fedexp.core.random_streams import client_draws, stream
from fedexp.core.values import Canaries, Layout, Plan, Uploads, Weights
from fedexp.parts.local.contract import LocalRule
from fedexp.simulation.besides import Besides
from fedexp.simulation.world import World
from fedexp.training.workers import Work


def at(world: World, number: int, models: tuple[Weights, ...] | None = None) -> "RoundContext":
    """What a part may ask in the round of this number that begins with these models (the first ones if not given)."""
    return RoundContext(world, number, models or (world.first,))


def asked_besides(ctx: "RoundContext") -> Besides:
    """What clients have been asked besides training, which is the round's to know."""
    return ctx._besides


@dataclass(frozen=True)
class RoundContext:
    """One round's view of the world, which parts do not get to see itself."""

    _world: World
    round: int
    models: tuple[Weights, ...]
    _besides: Besides = field(default_factory=Besides)

    def rng(self, *name: str | int) -> np.random.Generator:
        return stream(self._world.exp.seed, self.round, *name)

    def run_rng(self, *name: str | int) -> np.random.Generator:
        return stream(self._world.exp.seed, *name)

    def client_draws(self, *name: str, owner: np.ndarray) -> np.ndarray:
        return client_draws(self._world.exp.seed, self.round, *name, owner=owner, clients=self.clients)

    def client_run_draws(self, *name: str, owner: np.ndarray) -> np.ndarray:
        return client_draws(self._world.exp.seed, *name, owner=owner, clients=self.clients)

    @property
    def rule(self) -> LocalRule:
        return self._world.exp.local

    @property
    def clients(self) -> int:
        return self._world.partition.clients

    @property
    def holders(self) -> int:
        return int(np.count_nonzero(self.sizes))

    @property
    def sizes(self) -> np.ndarray:
        return self._world.sizes

    @property
    def layout(self) -> Layout:
        return self._world.layout

    @property
    def parameters(self) -> int:
        return self._world.layout.parameters

    @property
    def first(self) -> Weights:
        return self._world.first

    @property
    def unsent(self) -> np.ndarray:
        return self.rule.keeps(self.layout)

    @property
    def sent(self) -> int:
        return self.parameters - int((self.unsent < self.parameters).sum())

    @property
    def megabytes(self) -> float:
        return (self.layout.size - len(self.unsent)) * 4 / 1e6

    @property
    def bits_sent(self) -> float:
        return self.sent * self.rule.rows_sent * 32.0

    @property
    def upload_ratio(self) -> float:
        return self._world.exp.aggregator.upload_bytes(self.sent) / (4 * self.sent)

    @property
    def example_bytes(self) -> int:
        return self._world.train.x[0].numel() * self._world.train.x.element_size()

    def epochs(self, examples: np.ndarray) -> np.ndarray:
        rule = self._world.exp.local
        if rule.epochs is not None:
            return np.full(len(examples), float(rule.epochs))
        assert rule.steps is not None
        batch = examples if rule.batch_size == "full" else np.full(len(examples), rule.batch_size)
        return rule.steps * np.minimum(batch, examples) / np.maximum(examples, 1)

    def plan(self, owner: np.ndarray) -> Plan:
        return Plan(owner, tuple(self._world.partition.shard(int(client)) for client in owner))

    def malicious(self, owner: np.ndarray) -> np.ndarray:
        return np.isin(owner, self._world.malicious)

    @property
    def simulates(self) -> bool:
        return self._world.exp.fleet.simulates

    def resources(self, owner: np.ndarray) -> Resources:
        return self._world.exp.fleet.resources(owner, self)

    def class_counts(self, owner: np.ndarray) -> np.ndarray:
        classes = len(self._world.class_names)
        held = [np.bincount(self._world.labels[shard], minlength=classes) for shard in self.plan(owner).shards]
        return np.array(held, dtype=np.int64).reshape(len(owner), classes)

    def labels(self, examples: np.ndarray) -> np.ndarray:
        return self._world.labels[examples]

    def losses_of(self, weights: Weights, plan: Plan) -> np.ndarray:
        self._besides.judging(weights, plan.owner)
        return self._world.client_losses(weights, plan, 1)

    def fine_tuned(self, row: torch.Tensor, owner: np.ndarray, number: int, epochs: int | None) -> torch.Tensor:
        self._besides.tuned += len(owner)
        rule = self.rule if epochs is None else replace(self.rule, epochs=epochs, steps=None)
        rows = self._world.fine_tuned(row, owner, at(self._world, number, self.models), rule)
        unsent = torch.from_numpy(self.unsent).to(rows.device)
        rows[:, unsent] = row[unsent]
        return torch.where(rows.isfinite().all(dim=1, keepdim=True), rows, row)

    def groups(self, owner: np.ndarray) -> np.ndarray | None:
        return None if self._world.groups is None else self._world.groups[owner]

    def losses(self, owner: np.ndarray, power: int = 1) -> np.ndarray:
        self._besides.judging(self.models[0], owner)
        return self._world.client_losses(self.models[0], self.plan(owner), power)

    @property
    def judges(self) -> tuple[np.ndarray, ...]:
        return self._besides.judges

    def shares(self, uploads: Uploads) -> np.ndarray:
        return self._world.exp.aggregator.shares(uploads).cpu().numpy()

    @property
    def validation_size(self) -> int:
        return 0 if self._world.validation is None else len(self._world.validation)

    def model_losses(self, rows: torch.Tensor, examples: np.ndarray | None = None) -> np.ndarray:
        return self._world.model_losses(rows, examples)

    def mixture_losses(self, mix: np.ndarray, rows: torch.Tensor, places: range | None = None) -> np.ndarray:
        return self._world.mixture_losses(mix, rows, places)

    @property
    def public_size(self) -> int:
        return 0 if self._world.public is None else len(self._world.public)

    def public_outputs(self, rows: torch.Tensor, limit: int = 1000) -> torch.Tensor:
        order = self.run_rng("public_outputs").permutation(self.public_size)
        return self._world.public_outputs(rows, np.sort(order[:limit]))

    @property
    def canaries(self) -> Canaries:
        return self._world.canaries

    @property
    def delta(self) -> float:
        return self._world.exp.privacy.bound

    def example_losses(self, weights: Weights, index: np.ndarray) -> np.ndarray:
        return self._world.example_losses(weights, index)

    def gradients(self, index: np.ndarray) -> torch.Tensor:
        return self._world.gradients.each(self.models[0].flat, index)

    def gradient_sum(self, index: np.ndarray) -> torch.Tensor:
        return self._world.gradients.sum(self.models[0].flat, index)

    def share_out(self, out: torch.Tensor, jobs: list[tuple[np.ndarray, Callable[[], torch.Tensor]]]) -> None:
        self._world.crew.execute(Work(out, jobs))
