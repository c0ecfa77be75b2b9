"""The loop engine: one client after another with one reused network, whose entries are views of one flat row.

No data loader, images channels-last, one fused optimizer step on the row. On a CPU this is the fast engine for
convolutions, and on any device it is the reference of the stacked one.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
import torch
from torch import nn

from fedexp.core.device_arrays import Rows
from fedexp.core.random_streams import streams_by_round
from fedexp.core.torch_generator import seed_torch
from fedexp.core.values import Layout, Plan
from fedexp.maths.optimizer_steps import mask_rows
from fedexp.training.client.augmentation import BatchAugmenter
from fedexp.training.client.batches import Batches, running_losses
from fedexp.training.client.examples import Examples
from fedexp.training.client.keyed_random import keyed_random_for, split_seed
from fedexp.training.client.objective import Objective, ReferenceModels
from fedexp.training.client.parameter_views import view_parameters
from fedexp.training.client.phases import Phases
from fedexp.training.client.recipe import Recipe
from fedexp.training.layers.layer_pass import ChainPass
from fedexp.training.layers.manual_pass import manual_pass
from fedexp.training.per_example.clipped_sum import ClippedGradientSum, Noise

CACHED_FLOATS = 2**26  # up to this size (256 MB) a client's normalised examples are kept for the round


@dataclass(frozen=True)
class Task:
    """One round of local training: `start [C, D]`, the rule's `anchor [C, P]`, the plan, and each client's batches.

    `lr` is the rate of the round where a schedule moves it (None: the rule's own). `reference_rows [M, C, D]` are the
    models that the rule compares with, `counts [C, K]` each client's examples of every class; None where it asks for
    neither. `begun [C]` is the round in which each job was begun (None: this `round`).
    `watch` is called before each step with the number of steps done and in all; it may raise.
    """

    start: Rows
    anchor: Rows
    plan: Plan
    batches: tuple[Batches, ...]
    seed: int
    round: int
    lr: float | None = None
    watch: Callable[[int, int], None] = lambda done, steps: None
    reference_rows: torch.Tensor | None = None
    counts: torch.Tensor | None = None
    begun: np.ndarray | None = None

    def seeds(self, name: Literal["dropout", "augment", "privacy"], rows: np.ndarray) -> list[int]:
        """Returns the seeds of a random stream for the rows at these positions `[n]`.

        They are those of what the network draws in training, of the augmentation, and of private training's noise.
        """
        begun = np.full(len(rows), self.round) if self.begun is None else self.begun[rows]
        generators = streams_by_round(self.seed, begun, name, self.plan.owner[rows])
        return [int(generator.integers(2**62)) for generator in generators]


class Trainer(Protocol):
    """The interface of engines: a trainer trains rows of a task."""

    def groups(self, task: Task, workers: int) -> list[np.ndarray]:
        """Splits the rows into groups that train together, `[n]` each, the longest first."""
        ...

    def run(self, task: Task, rows: np.ndarray) -> torch.Tensor:
        """Trains the rows at the positions `[n]`: `[n, D + 2]`, trained row, loss before and loss after.

        Or `[n, D + P + 2]` with a rule that tells its last slot: it comes after the trained row.
        """
        ...


class LoopTrainer:
    """Trains rows one after another, with one network."""

    def __init__(self, network: nn.Module, layout: Layout, examples: Examples, recipe: Recipe) -> None:
        rule, privacy, device = recipe.rule, recipe.privacy, examples.x.device
        self.network, self.layout, self.examples, self.rule = network, layout, examples, rule
        self.augmenter = BatchAugmenter(examples)
        self.reference_models = ReferenceModels(network, layout) if rule.compares else None
        self.objective = Objective(recipe.loss, rule, network)
        self.keyed_random = keyed_random_for(network, examples.inputs(slice(0, 2)))
        self.seeds = torch.zeros(2, dtype=torch.int32, device=device)
        self.compute_gradient, self.noise = self._mean_gradient, None
        if privacy.example_clip is not None:
            example = examples.inputs(slice(0, 1))
            self.clipped_gradients = ClippedGradientSum(
                network, layout, privacy.example_clip, example, self.objective.per_example
            )
            self.noise = Noise(1, layout.parameters, privacy.example_noise, device)
            self.compute_gradient = self._private_gradient
        self.row = torch.zeros(layout.size, device=device)
        self.grad = torch.zeros(layout.parameters, device=device)
        self.slots = torch.zeros((rule.slots, layout.parameters), device=device)
        self.phases = Phases(rule, layout, self.row)
        self.reference_rows: torch.Tensor | None = None  # of the client whose turn it is, like the counts
        self.counts: torch.Tensor | None = None
        view_parameters(network, layout, self.row)
        self.parameters = list(network.parameters())
        self.manual_pass = self._make_manual_pass(examples)
        if self.manual_pass is not None:
            self.compute_gradient = self._manual_gradient
        network.train()

    def _make_manual_pass(self, examples: Examples) -> ChainPass | None:
        """Returns manual passes where the rule uses only the outputs; None otherwise and on GPUs."""
        if self.noise is not None or not self.objective.is_loss_alone or self.row.device.type != "cpu":
            return None
        return manual_pass(self.network, self.layout.views(self.grad), examples.shape, self.keyed_random)

    def groups(self, task: Task, workers: int) -> list[np.ndarray]:
        """Every row alone, `[n]` with n = 1, the longest first."""
        steps = np.array([len(batches.order) for batches in task.batches])
        return [np.array([row]) for row in np.argsort(-steps, kind="stable")]

    def run(self, task: Task, rows: np.ndarray) -> torch.Tensor:
        """Trains the rows `[n]`: `[n, D + 2]`; the result of a row does not depend on the others."""
        return torch.stack([self._train_client(task, int(row)) for row in rows])

    def _train_client(self, task: Task, row: int) -> torch.Tensor:
        batches = task.batches[row]
        self.row.copy_(task.start[row])
        self.rule.fill(self.slots, task.anchor[row])
        alone = np.array([row])
        seed = task.seeds("dropout", alone)[0]
        if self.keyed_random is not None:
            self.seeds.copy_(split_seed([seed])[:, 0])
        self.augmenter.begin(partial(task.seeds, "augment", alone))
        if self.noise is not None:
            self.noise.begin(task.seeds("privacy", alone), [batches.size])
        with seed_torch(seed, self.row.device):
            losses = self._descend(task, row)
        epoch_losses = running_losses(losses, batches.counts, batches.epoch).tolist()
        last_slot = [self.slots[-1]] if self.rule.finish_needs_slot else []
        return torch.cat([self.row, *last_slot, self.row.new_tensor(epoch_losses)])

    def _descend(self, task: Task, row: int) -> np.ndarray:
        """Takes the client's steps on the row; returns the loss of each batch before its step."""
        anchor, shard, batches = task.anchor[row], task.plan.shards[row], task.batches[row]
        self.reference_rows = None if task.reference_rows is None else task.reference_rows[:, row]
        self.counts = None if task.counts is None else task.counts[row]
        if batches.steps == 0:
            return np.zeros(0)
        if self.manual_pass is None:  # else no layer can have left the mode, and telling all of them takes its time
            self.network.train()
        w, losses, rule = self.row[: self.layout.parameters], [], self.rule.at(task.lr)
        pull_mask = rule.pulled_steps(batches.steps, batches.epoch).tolist()
        moving = self._moving_entries(rule.first_phase(batches.steps, batches.epoch))
        counters = pairwise(torch.arange(batches.steps + 1.0, device=w.device).unbind())  # steps before and after
        for (inputs, labels), pull_now, mask, (done, step) in zip(
            self._batches(shard, batches), pull_mask, moving, counters, strict=True
        ):
            task.watch(len(losses), batches.steps)
            if self.noise is not None:  # from its own stream: inside `keyed_random` it would be drawn like dropout
                self.noise.draw(np.ones(1, dtype=bool))
            augmented_inputs = self.augmenter(inputs, done)
            if self.keyed_random is not None:
                self.keyed_random.begin(self.seeds, done)
            losses.append(self.compute_gradient(augmented_inputs, labels))
            grad = self.grad if mask is None else mask_rows(self.grad, mask)
            rule.update(w, rule.direction(rule.clip_gradient(grad), w, anchor), self.slots, step, mask)
            if pull_now:
                rule.pull(w, anchor, None)
        return torch.stack(losses).cpu().numpy()

    def _moving_entries(self, first_phase: np.ndarray) -> list[torch.Tensor | None]:
        """For every step 1 where an entry moves and else 0, `[P]`; None without phases."""
        if self.phases.in_first is None:
            return [None] * len(first_phase)
        active = self.row.new_ones(1)
        masks = [self.phases.moving(is_first, active) for is_first in (0 * active, active)]
        return [masks[int(is_first)] for is_first in first_phase]

    def _mean_gradient(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Stores the gradient of the batch's mean loss in `grad`; returns the loss."""
        reference_outputs = (
            self.reference_models.evaluate(self.reference_rows, inputs)
            if self.reference_models and self.reference_rows is not None
            else ()
        )
        with self.keyed_random or nullcontext():
            loss = self.objective.mean(self.network(inputs), labels, reference_outputs, self.counts)
            grads = torch.autograd.grad(loss, self.parameters, materialize_grads=True)
        torch.cat([grad.reshape(-1) for grad in grads], out=self.grad)
        return loss.detach()

    def _manual_gradient(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Stores the gradient in `grad` by manual passes instead of autograd; returns the mean loss."""
        assert self.manual_pass is not None
        if len(inputs) < self.manual_pass.min_batch:
            return self._mean_gradient(inputs, labels)
        outputs = self.manual_pass.forward(inputs)
        with self.keyed_random or nullcontext():  # a loss may draw, too
            loss, grad = self.objective.grad(outputs, labels)
        self.manual_pass.backward(grad)
        return loss

    def _private_gradient(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Stores the private gradient in `grad`; returns the mean loss."""
        assert self.noise is not None
        with self.keyed_random or nullcontext():
            total, loss = self.clipped_gradients.batch_sum(self.row, inputs, labels)
        self.grad = self.noise.privatise(total[None])[0]
        return loss

    def _batches(self, shard: np.ndarray, batches: Batches) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yields the batches in order. With several epochs, a small client's examples are normalised once."""
        examples, bounds = self.examples, batches.bounds.tolist()
        if batches.steps <= batches.epoch or len(shard) * examples.x[0].numel() > CACHED_FLOATS:
            order = examples.to_device(shard[batches.order])
            for a, b in pairwise(bounds):
                yield examples.inputs(order[a:b]), examples.y[order[a:b]]
            return
        positions, order = examples.to_device(shard), examples.to_device(batches.order)
        cached, labels = examples.inputs(positions), examples.y[positions]
        pixels = cached.movedim(-3, -1) if examples.images else cached
        for first in range(0, batches.steps, batches.epoch):
            epoch_bounds = bounds[first : first + batches.epoch + 1]
            index, sizes = order[epoch_bounds[0] : epoch_bounds[-1]], np.diff(epoch_bounds).tolist()
            x, y = pixels.index_select(0, index), labels[index]
            x = x.movedim(-1, -3) if examples.images else x
            yield from zip(x.split(sizes), y.split(sizes), strict=True)
