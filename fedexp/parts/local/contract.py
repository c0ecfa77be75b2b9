"""The contract of local rules: how a client's gradients become steps, and what it sends and keeps.

Legend: B batch, C participants, n clients, K classes, D entries of a model, P trainable entries, W of a message.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import nn

from fedexp.core.part import Positive
from fedexp.core.values import Layout, Memory, Trained, Uploads
from fedexp.maths.optimizer_steps import clip_to_norm
from fedexp.parts.context import Context
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.loss.contract import Loss
from fedexp.parts.model.contract import Model
from fedexp.parts.schedule.contract import with_rate
from fedexp.parts.workload import Workload


class ModelOutputs(NamedTuple):
    """What a model gives for a batch: `outputs [B, *facts.outputs]`, and the features that these are made of.

    `features [B, ...]` is what its last linear layer is given, or the layer that has `takes_features = True`; a network
    with neither has its outputs there.
    """

    outputs: torch.Tensor
    features: torch.Tensor


class LocalRule(Workload):
    """What a client does with its data: how long, in which batches, and how a gradient becomes a step.

    `begin` says what each participant starts from and gives it an anchor, one row of its own that the steps refer to;
    `cost` says what it makes of the loss; `direction`, `update` and `pull` make the steps, on the trainable part
    `[..., P]` of one row or of a stack of rows alike; `finish` says what is sent, and `receive` what the server makes
    of what it gets besides deltas. The memory holds what clients keep between rounds.
    """

    extra_rows: ClassVar[tuple[str, ...]] = ()  # names of the rows [P] that travel each way besides the model
    keeps_rows = False  # whether clients keep rows between rounds, entry by entry those of the global model
    compares: ClassVar[tuple[str, ...]] = ()  # the models besides the one in training that `cost` asks, in words
    counts_classes: ClassVar[bool] = False  # whether `cost` asks how many examples of each class the client holds
    reads_class_targets: ClassVar[bool] = False  # whether `cost` takes targets for classes
    needs_log_likelihood: ClassVar[bool] = False  # whether it takes the loss of an example for -log p of its class

    is_gradient_sum = True  # whether an update is a sum of gradients, whose weights `effective_steps` knows
    no_gradient_sum = "makes updates that are no sums of gradients with known weights"  # said where it is False

    starts_from_examples = False  # whether `begin` fits what a client starts from to its examples

    judging_fraction = 0.0  # of a client's training examples, held out to judge other clients' models on

    server_keys: ClassVar[tuple[str, ...]] = ()  # keys that the aggregator must have, too, with the same values

    adds_nothing_at: ClassVar[Mapping[str, float | tuple[str, ...]]] = {}  # by key, the value at which steps are plain

    lr: Annotated[float, Positive] = 0.1

    clip_norm: Annotated[float, Positive] | None = None

    @property
    def cost_needs_client_state(self) -> bool:
        """Whether an example's cost depends on other models, or on the client's class counts."""
        return bool(self.compares) or self.counts_classes

    @property
    def needs_classes(self) -> bool:
        """Whether it can only train on data whose targets are classes."""
        return self.counts_classes or self.reads_class_targets

    @property
    def slots(self) -> int:
        """How many rows of optimizer state a client's training needs."""
        return 0

    @property
    def companion(self) -> "LocalRule | None":
        """The rule by which each participant also trains a model of its own, on the same batches; None: it has none.

        That rule's `begin` gives its start from what arrived, its `finish` keeps it, nothing of it is sent, and its
        `client_models` are those that clients use.
        """
        return None

    def wrap_network(self, network: nn.Module) -> nn.Module:
        """The network that clients train by this rule, made from the model's: the same, unless a companion has more."""
        return network

    def extend_rows(self, rows: torch.Tensor, layout: Layout) -> torch.Tensor:
        """Models that arrived, `rows [n, D]`, as rows of the wrapped network: here the same."""
        return rows

    @property
    def steps_per_batch(self) -> int:
        """How many steps in a row a client takes on each batch."""
        return 1

    @property
    def repeats_batches(self) -> bool:
        """Whether it takes several steps on a batch."""
        return self.steps_per_batch > 1

    def passes(self, examples: np.ndarray) -> np.ndarray:
        trained_models = 1 if self.companion is None else 2
        return super().passes(examples) * trained_models * self.steps_per_batch

    @property
    def fine_tuning_rule(self) -> "LocalRule | None":
        """The rule by which a client tunes a model to its own examples: this one, where it needs no other rounds.

        None where it does.
        """
        return None if self.keeps_rows or self.extra_rows or self.compares else self

    def at(self, lr: float | torch.Tensor | None) -> Self:
        """A copy of the rule with the learning rate `lr`; the rule itself if `lr` is None.

        Where a schedule moves the rate and a GPU replays the steps, the rate is a scalar in a tensor: a rule that
        multiplies by it follows, one that turns it into a number does not.
        """
        return with_rate(self, lr)

    @property
    def finish_needs_slot(self) -> bool:
        """Whether `finish` gets the last optimizer slot as it is after the training."""
        return False

    def fill(self, slots: torch.Tensor, anchor: torch.Tensor) -> None:
        """Initialises the slots `[slots, ..., P]` in place before the first step: zeros."""
        slots.zero_()

    def refuse(self, model: Model, facts: Facts) -> None:
        """Raises ConfigError where it cannot train such networks, and says why."""

    def private_columns(self, layout: Layout) -> np.ndarray:
        """The columns `[m]` of a row, ascending, that each client keeps and never sends: none."""
        return np.zeros(0, dtype=np.int64)

    def begin(
        self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What each participant trains from, `[C, D]`, and its anchor, `[C, P]`: both the received model.

        `ctx.round` and what `ctx` draws are those of the round in which these participants began, also in
        `reference_models`; its models are the present ones, so take `received`. In `finish` the round is the present
        one, too.
        """
        return received, received[:, : ctx.layout.parameters]

    def reference_models(self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context) -> torch.Tensor:
        """The models that `cost` compares with the participant's, `[M, C, D]`, one for each name in `compares`."""
        return received.new_zeros((0, *received.shape))

    def cost(
        self,
        loss: Loss,
        own_outputs: ModelOutputs,
        reference_outputs: tuple[ModelOutputs, ...],
        targets: torch.Tensor,
        counts: torch.Tensor | None,
    ) -> torch.Tensor:
        """The cost of every example to its client, `[B]`: the loss, and what the rule adds to it.

        `own_outputs` is what the model in training says of the batch, `reference_outputs [M]` what the compared ones
        say. `counts [K]` are numbers of examples, if the rule counts them. Clients descend the mean over a batch; an
        example's cost depends on no other example. What is measured is the loss alone.
        """
        return loss.per_example(own_outputs.outputs, targets)

    def cost_of_batch(self, own_outputs: ModelOutputs, share: torch.Tensor) -> torch.Tensor | None:
        """What a batch as a whole costs besides the mean of its examples, a scalar; None: nothing.

        `share [B]` is the weight of each example in the mean, 0 where a place of the batch is empty.
        """
        return None

    def clip_gradient(self, grad: torch.Tensor) -> torch.Tensor:
        """Clips the gradient of a mini-batch's mean loss, `[..., P]`, to `clip_norm`, before the rule gets it."""
        return grad if self.clip_norm is None else clip_to_norm(grad, self.clip_norm)

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        """The direction of descent at `w [..., P]`: the gradient `[..., P]`, and whatever the rule adds to it."""
        return grad

    @abstractmethod
    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        """Moves `w` in place. `slots [slots, ..., P]`, `step` counts from 1; what is 0 in `active` stays.

        `active` is `[C, 1]`, of rows, or where a step moves some columns alone of entries, `[C, P]` or `[P]`.
        """
        raise NotImplementedError

    def pulled_steps(self, steps: int, epoch: int) -> np.ndarray:
        """After which of a client's steps `pull` is called, bool [steps]; an epoch has `epoch` steps."""
        return np.zeros(steps, dtype=bool)

    def pull(self, w: torch.Tensor, anchor: torch.Tensor, pull_mask: torch.Tensor | None) -> None:
        """Moves `w` in place after a step; rows where `pull_mask [C, 1]` is 0 stay (None: all rows move)."""

    def phase_columns(self, layout: Layout) -> np.ndarray | None:
        """The trainable columns `[m]` of a row that move in the first phase alone; None: all move in every step."""
        return None

    def first_phase(self, steps: int, epoch: int) -> np.ndarray:
        """Which of a client's steps move the `phase_columns`, bool [steps]; the others move all other columns."""
        return np.zeros(steps, dtype=bool)

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        """What the clients send, `[C, W]`, and their memory.

        That is the delta `[C, D]` against the received model and, behind it, a row `[C, P]` for each of `extra_rows`,
        entry by entry those that are trained. All of it is one message: codecs, attacks and privacy change it as one.
        """
        return trained.delta(), memory

    def receive(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        """The memory after the server got the `extra` rows of these uploads, in the order of their owners.

        What `finish` leaves for it must be gathered: a round's jobs may be finished in several groups.
        """
        return memory

    def effective_steps(self, steps: np.ndarray) -> np.ndarray:
        """The effective number of plain steps of updates after `steps [C]` steps, float64 [C]: here the same number.

        That is the 1-norm of the weights that an update gives to the gradients along its steps.
        """
        return steps.astype(float)

    def client_models(self, owner: np.ndarray, rows: torch.Tensor, memory: Memory) -> torch.Tensor:
        """The models that these clients use, `[n, D]`, given the global models `rows`: here the global ones."""
        return rows
