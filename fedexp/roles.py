"""The contracts of the parts, with do-nothing defaults, so that `none` is the base class.

One shape: (inputs, memory, ctx) -> (output, memory). Memories are dictionaries of tensors, numbers, texts,
tuples and dictionaries: what a checkpoint can hold. A part reaches data only through `ctx`.
Legend: C participants, N clients, D entries of a model, P trainable entries.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import torch
from torch import nn

from fedexp.data.dataset import Facts, Split
from fedexp.resources import Resources
from fedexp.schedule import Schedule
from fedexp.spec import Part, Positive
from fedexp.values import Columns, Layout, Memory, Plan, Trained, Uploads, Weights

if TYPE_CHECKING:
    from fedexp.context import Context


@dataclass(frozen=True, kw_only=True)
class Model(Part):
    """A network for examples of a given shape."""

    buffers: Literal["average", "local"] = "average"

    def refuse(self, facts: Facts) -> None:
        """Raises ConfigError where the network cannot take such examples, and says why."""

    def network(self, facts: Facts) -> nn.Module:
        """The network, its entries not yet drawn: `[B, *shape]` to logits `[B, K]`."""
        raise NotImplementedError

    def personal(self, layout: Layout) -> np.ndarray:
        """The columns of a row, ascending, that each client goes on with next time, though it sends them too."""
        return np.arange(layout.parameters if self.buffers == "local" else layout.size, layout.size)


@dataclass(frozen=True, kw_only=True)
class LocalRule(Schedule):
    """What a client does with its data: how long, in which batches, and how a gradient becomes a step.

    `begin` says what each participant starts from and gives it an anchor, one row of its own that the steps refer to;
    `direction`, `update` and `pull` make the steps, on the trainable part `[..., P]` of one row or of a stack of rows
    alike; `finish` says what is sent. The memory holds what clients keep between rounds.
    """

    rows_sent = 1  # how many rows of a model's size travel each way
    keeps_rows = False  # whether clients keep rows between rounds, entry by entry those of the global model

    lr: Annotated[float, Positive] = 0.1

    @property
    def slots(self) -> int:
        """How many rows of optimizer state a client's training needs; fresh zeros each round."""
        return 0

    def refuse(self, model: Model, facts: Facts) -> None:
        """Raises ConfigError where it cannot train such networks, and says why."""

    def keeps(self, layout: Layout) -> np.ndarray:
        """The columns of a row, ascending, that each client keeps to itself and never sends: none."""
        return np.zeros(0, dtype=np.int64)

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: "Context"
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What each participant trains from, `[C, D]`, and its anchor, `[C, P]`: both the received model."""
        return received, received[:, : ctx.parameters]

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        """What is descended at `w`: the gradient, and whatever the rule adds to it."""
        return grad

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        """Moves `w` in place. `slots [slots, ..., P]`, `step` counts from 1, `active [C, 1]` freezes rows by 0."""
        raise NotImplementedError

    def pulls(self, steps: int, epoch: int) -> np.ndarray:
        """After which of a client's steps it is pulled, bool [steps]; `epoch` is the number of steps of an epoch."""
        return np.zeros(steps, dtype=bool)

    def pull(self, w: torch.Tensor, anchor: torch.Tensor, due: torch.Tensor | None) -> None:
        """Moves `w` in place once a step is done; `due [C, 1]` leaves rows where it is 0 (None: all are due)."""

    def finish(self, trained: Trained, memory: Memory, ctx: "Context") -> tuple[torch.Tensor, Memory]:
        """What is sent, as deltas `[C, D]` against the received model, and what the clients remember."""
        return trained.delta(), memory

    def serve(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        """The models that these clients use, `[n, D]`, given the global one's `rows`: the global one."""
        return rows


@dataclass(frozen=True, kw_only=True)
class Selector(Part):
    """Who takes part in a round."""

    needs_validation = False
    needs_fleet = False
    foreseeable = False  # whether the seed alone, the fleet's machines included, tells who is asked in which round
    reveals = ""  # what it learns of single clients beside what they upload, in words
    averages_models = False  # whether it looks at averages of the global and the clients' models
    needs_one_model = ""  # what it does that asks for one model of all clients, in words

    def rate(self, clients: int) -> float:
        """The chance of each of so many clients to be asked in a round, if that is one number; 1 where it is not."""
        return 1.0

    def choose(self, memory: Memory, ctx: "Context") -> tuple[Plan, Memory]:
        """The participants of this round, in the order of their uploads, and what each trains on."""
        raise NotImplementedError

    def observe(self, uploads: Uploads, memory: Memory, ctx: "Context") -> Memory:
        """Learns from what came back. The uploads may hold rows that are not finite."""
        return memory


@dataclass(frozen=True, kw_only=True)
class Fleet(Part):
    """The clients' machines and links, and the clock. The base has neither: uploads arrive, no time passes."""

    simulates = False

    def refuse(self, clients: int | None) -> None:
        """Raises ConfigError where the fleet's files do not serve so many clients (None: the data will tell)."""

    def resources(self, owner: np.ndarray, ctx: "Context") -> Resources:
        """What these clients can do in this round."""
        raise NotImplementedError

    def deliver(self, uploads: Uploads, plan: Plan, memory: Memory, ctx: "Context") -> tuple[Uploads, float, Memory]:
        """What arrives, and the simulated seconds that the round took."""
        return uploads, 0.0, memory


@dataclass(frozen=True, kw_only=True)
class Attack(Part):
    """What the malicious clients do to their data and to what they send. The base does nothing."""

    def refuse(self, facts: Facts) -> None:
        """Raises ConfigError where such examples cannot be attacked so, and says why."""

    def poison(self, train: Split, owned: np.ndarray, classes: int, rng: np.random.Generator) -> Split:
        """The training data, once, with the malicious clients' examples (numbers `owned`) changed in a copy."""
        return train

    def probes(self, test: Split) -> dict[str, Split]:
        """Examples on which the global model's accuracy is a column of its own, by the name of the column."""
        return {}

    def tamper(self, uploads: Uploads, memory: Memory, ctx: "Context") -> tuple[Uploads, Memory]:
        """What the server receives instead."""
        return uploads, memory


@dataclass(frozen=True, kw_only=True)
class PreAggregation(Part):
    """What the server makes of the rows before any aggregator sees them. The base leaves them as they are."""

    averages_rows = False  # whether it mixes the rows of several clients

    def mix(self, uploads: Uploads, memory: Memory, ctx: "Context") -> tuple[Uploads, Memory]:
        """The rows to combine, perhaps fewer of them."""
        return uploads, memory


@dataclass(frozen=True, kw_only=True)
class Aggregator(Part):
    """How the uploads of the participants become a proposal for the next model."""

    needs_validation = False
    keeps_layout = True  # whether the proposal has the shape of the clients' networks
    keeps_rows = False  # whether it remembers what each client sent
    averages = False  # whether its proposal is the mean of the rows by their shares
    reveals = ""  # what it learns of single clients beside what they upload, in words
    hides_rows = False  # whether nobody sees the row of a single client
    weighting: Literal["num_samples", "uniform"] = "num_samples"

    def refuse(self, model: Model, facts: Facts) -> None:
        """Raises ConfigError where it cannot combine such networks, and says why."""

    def upload_bytes(self, entries: int) -> int:
        """What a client sends for a row of so many entries: each as a float32."""
        return 4 * entries

    def counts(self, uploads: Uploads) -> np.ndarray:
        """What each row counts beside the others, float64 [C]."""
        examples = uploads.examples if self.weighting == "num_samples" else uploads.examples > 0
        return examples * uploads.importance

    def shares(self, uploads: Uploads) -> torch.Tensor:
        """Weights of the rows, float64 [C], summing to one (all zero where there is nothing to weigh)."""
        weight = self.counts(uploads)
        total = weight.sum()
        return torch.from_numpy(weight / total if total > 0 else weight).to(uploads.delta.device)

    def reduce(self, delta: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        """One row `[D]` of the rows `delta [C, D]`, given their shares `[C]`."""
        raise NotImplementedError

    def dispatch(self, weights: Weights, owner: np.ndarray, memory: Memory) -> torch.Tensor:
        """What each participant starts from, a row of the clients' network each: `[C, D]`, the global model for all."""
        return weights.flat.expand(len(owner), -1)

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: "Context") -> tuple[Weights, Memory]:
        """The proposal: the model plus the reduced delta, or the model itself when nothing usable came."""
        share = self.shares(uploads)
        if not share.any():
            return weights, memory
        return Weights(weights.flat + self.reduce(uploads.delta, share), weights.layout), memory


@dataclass(frozen=True, kw_only=True)
class ServerOptimizer(Part):
    """How the server moves from its model to the proposal. The base goes all the way."""

    needs_layout = False  # whether model and proposal must have the same shape

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        """The next model."""
        return proposal, memory


@dataclass(frozen=True, kw_only=True)
class Stop(Part):
    """When a run ends before its last round. The base never says so."""

    needs_validation = False
    needs_clock = False
    needs_privacy = False

    def judge(self, row: Columns, memory: Memory) -> tuple[str | None, Memory]:
        """A reason to stop after this round, or None, given the round's line of metrics.csv less the test data."""
        return None, memory
