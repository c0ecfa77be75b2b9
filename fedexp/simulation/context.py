"""The questions a part may ask: the only way it reaches data and randomness.

Legend: n clients asked for, C participants, R models, D entries of a model, S examples, K classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from fedexp.core.client_resources import Resources
from fedexp.core.random_streams import client_draws, stream
from fedexp.core.values import Canaries, Layout, Plan, Uploads, Weights
from fedexp.parts.local.contract import LocalRule
from fedexp.training.workers import Work

if TYPE_CHECKING:
    from fedexp.simulation.world import World


@dataclass(frozen=True)
class Context:
    """One round's view of the world; `models` are those that the round began with."""

    world: "World"
    round: int
    models: tuple[Weights, ...]

    def rng(self, *name: str | int) -> np.random.Generator:
        """The random stream of (seed, round, name)."""
        return stream(self.world.exp.seed, self.round, *name)

    def run_rng(self, *name: str | int) -> np.random.Generator:
        """The random stream of (seed, name): the same draws in every round."""
        return stream(self.world.exp.seed, *name)

    def client_draws(self, *name: str, owner: np.ndarray) -> np.ndarray:
        """Four uniform draws of each of these clients in this round, `[n, 4]`."""
        return client_draws(self.world.exp.seed, self.round, *name, owner=owner, clients=self.clients)

    def client_run_draws(self, *name: str, owner: np.ndarray) -> np.ndarray:
        """Four uniform draws of each of these clients, the same in every round, `[n, 4]`."""
        return client_draws(self.world.exp.seed, *name, owner=owner, clients=self.clients)

    @property
    def rule(self) -> LocalRule:
        """What clients do with their data."""
        return self.world.exp.local

    @property
    def clients(self) -> int:
        """Number of clients N."""
        return self.world.partition.clients

    @property
    def holders(self) -> int:
        """Number of clients that hold examples."""
        return int(np.count_nonzero(self.sizes))

    @property
    def sizes(self) -> np.ndarray:
        """Number of examples of every client, int64 [N]."""
        return self.world.sizes

    @property
    def layout(self) -> Layout:
        """The layout of the clients' network, whatever the global models' is by now."""
        return self.world.layout

    @property
    def parameters(self) -> int:
        """Trainable entries of the model."""
        return self.world.layout.parameters

    @property
    def first(self) -> Weights:
        """The model before the first round."""
        return self.world.first

    @property
    def unsent(self) -> np.ndarray:
        """The columns of a row, ascending, that never leave a client."""
        return self.rule.keeps(self.layout)

    @property
    def sent(self) -> int:
        """Trainable entries that travel: all but those that clients keep to themselves."""
        return self.parameters - int((self.unsent < self.parameters).sum())

    @property
    def megabytes(self) -> float:
        """What one row takes on its way, statistics included."""
        return (self.layout.size - len(self.unsent)) * 4 / 1e6

    @property
    def bits_sent(self) -> float:
        """What the server sends to a client in a round: trainable entries of 32 bits."""
        return self.sent * self.rule.rows_sent * 32.0

    @property
    def upload_ratio(self) -> float:
        """How many times as much a client sends back."""
        return self.world.exp.aggregator.upload_bytes(self.sent) / (4 * self.sent)

    @cached_property
    def example_bytes(self) -> int:
        """Bytes of one example as it is stored."""
        return self.world.train.x[0].numel() * self.world.train.x.element_size()

    def epochs(self, examples: np.ndarray) -> np.ndarray:
        """Passes over its data that a client with so many examples makes in a round."""
        rule = self.world.exp.local
        if rule.epochs is not None:
            return np.full(len(examples), float(rule.epochs))
        assert rule.steps is not None
        batch = examples if rule.batch_size == "full" else np.full(len(examples), rule.batch_size)
        return rule.steps * np.minimum(batch, examples) / np.maximum(examples, 1)

    def plan(self, owner: np.ndarray) -> Plan:
        """These clients, each on its own data."""
        return Plan(owner, tuple(self.world.partition.shard(int(client)) for client in owner))

    def malicious(self, owner: np.ndarray) -> np.ndarray:
        """Which of these clients are malicious, bool [n]."""
        return np.isin(owner, self.world.malicious)

    @property
    def simulates(self) -> bool:
        """Whether the fleet has machines and links to ask for."""
        return self.world.exp.fleet.simulates

    def resources(self, owner: np.ndarray) -> Resources:
        """What these clients can do in this round (a fleet without machines raises)."""
        return self.world.exp.fleet.resources(owner, self)

    def class_counts(self, owner: np.ndarray) -> np.ndarray:
        """How many examples of each class these clients hold, int64 [n, K]."""
        classes = len(self.world.class_names)
        held = [np.bincount(self.world.labels[shard], minlength=classes) for shard in self.plan(owner).shards]
        return np.array(held, dtype=np.int64).reshape(len(owner), classes)

    def labels(self, examples: np.ndarray) -> np.ndarray:
        """The classes of these training examples."""
        return self.world.labels[examples]

    def losses_of(self, weights: Weights, plan: Plan) -> np.ndarray:
        """Mean loss of a model on each shard of a plan [C]; NaN without data."""
        return self.world.client_losses(weights, plan, 1)

    def fine_tuned(self, row: torch.Tensor, owner: np.ndarray, number: int, epochs: int | None) -> torch.Tensor:
        """What these clients make of a model `[D]` by their rule alone, in so many epochs (None: the rule's), `[n, D]`.

        Batches are drawn from a stream of that round beside those of its training. The rows are what the server gets to
        see: the model itself in the columns that never leave a client, and for a training that is not finite.
        """
        rule = self.rule if epochs is None else replace(self.rule, epochs=epochs, steps=None)
        rows = self.world.fine_tuned(row, owner, self.world.at(number, self.models), rule)
        unsent = torch.from_numpy(self.unsent).to(rows.device)
        rows[:, unsent] = row[unsent]
        return torch.where(rows.isfinite().all(dim=1, keepdim=True), rows, row)

    def groups(self, owner: np.ndarray) -> np.ndarray | None:
        """The groups that these clients are known to belong to; None where there are none."""
        return None if self.world.groups is None else self.world.groups[owner]

    def losses(self, owner: np.ndarray, power: int = 1) -> np.ndarray:
        """Mean of loss**power of the received global model on each client's own data [n]; NaN without data."""
        return self.world.client_losses(self.models[0], self.plan(owner), power)

    def shares(self, uploads: Uploads) -> np.ndarray:
        """What each row counts in the aggregator's mean, float64 [C]."""
        return self.world.exp.aggregator.shares(uploads).cpu().numpy()

    @property
    def validation_size(self) -> int:
        """How many validation examples the server holds; 0 unless some part asks for them."""
        return 0 if self.world.validation is None else len(self.world.validation)

    def model_losses(self, rows: torch.Tensor, examples: np.ndarray | None = None) -> np.ndarray:
        """Loss of every model `rows [R, D]` on the server's validation data, or on these of it, float64 [R]."""
        return self.world.model_losses(rows, examples)

    def mixture_losses(self, mix: np.ndarray, rows: torch.Tensor) -> np.ndarray:
        """Loss of every model `mix [R, M] @ rows [M, D]` on the server's validation data, float64 [R]."""
        return self.world.mixture_losses(mix, rows)

    @property
    def public_size(self) -> int:
        """How many public examples the server holds."""
        return 0 if self.world.public is None else len(self.world.public)

    def public_outputs(self, rows: torch.Tensor, limit: int = 1000) -> torch.Tensor:
        """Log-probabilities that every model `rows [n, D]` gives the public examples, `[n, S, K]`.

        Of more than `limit` examples a seeded sample is asked, the same in every round and part of every larger one; a
        model's answers do not depend on which others are asked.
        """
        order = self.run_rng("public_outputs").permutation(self.public_size)
        return self.world.public_outputs(rows, np.sort(order[:limit]))

    @property
    def canaries(self) -> Canaries:
        """What the audit planted."""
        return self.world.canaries

    @property
    def delta(self) -> float:
        """The chance that the promised privacy fails."""
        return self.world.exp.privacy.bound

    def example_losses(self, weights: Weights, index: np.ndarray) -> np.ndarray:
        """Loss of a model on each of these training examples, float64 [n]."""
        return self.world.example_losses(weights, index)

    def gradients(self, index: np.ndarray) -> torch.Tensor:
        """The received global model's gradient at each of these training examples, clipped as in training, [n, P]."""
        return self.world.gradients.each(self.models[0].flat, index)

    def gradient_sum(self, index: np.ndarray) -> torch.Tensor:
        """Their sum, [P]."""
        return self.world.gradients.sum(self.models[0].flat, index)

    def share_out(self, out: torch.Tensor, jobs: list[tuple[np.ndarray, Callable[[], torch.Tensor]]]) -> None:
        """Fills rows of `out` by jobs (positions, and the function that gives these rows) that idle workers take."""
        self.world.crew.execute(Work(out, jobs))
