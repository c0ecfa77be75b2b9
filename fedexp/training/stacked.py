"""The stacked engine: all rows of a round at once under torch.func, as many kernels for a hundred clients as for one.

Rows are sorted by their number of steps and cut in buckets that bound memory and padding; a padded example has mask 0
and a row that is done is frozen. On a GPU the step is captured once a shape and replayed.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from fedexp.core.torch_generator import begun_at
from fedexp.core.values import Layout
from fedexp.parts.layers import BatchNorm
from fedexp.parts.local.contract import Seen
from fedexp.training.activations import activation_floats
from fedexp.training.bucket import Bucket
from fedexp.training.captures import Captures, padded, rounded_down, rounded_up
from fedexp.training.draws import drawing, halves
from fedexp.training.examples import Examples
from fedexp.training.loop import Task
from fedexp.training.losses import Objective
from fedexp.training.onlookers import Onlookers
from fedexp.training.private import Clipped, Noise
from fedexp.training.recipe import Recipe
from fedexp.training.timetable import Timetable

Tensors = tuple[torch.Tensor, ...]


class Stacked:
    """Trains rows together."""

    def __init__(
        self, network: nn.Module, layout: Layout, examples: Examples, recipe: Recipe, memory_mb: float
    ) -> None:
        rule, privacy = recipe.rule, recipe.privacy
        self.network, self.layout, self.examples, self.rule = network, layout, examples, rule
        self.privacy, self.memory_mb = privacy, memory_mb
        self.onlookers = Onlookers(network, layout) if rule.compares else None
        self.objective = Objective(recipe.loss, rule, network)
        self.norms = [layer for layer in network.modules() if isinstance(layer, BatchNorm)]
        self.draws = drawing(network, examples.inputs(slice(0, 2)))
        self.activations = activation_floats(network, examples)
        self.clipped: Clipped | None = None
        if privacy.example_clip is not None:
            example = examples.inputs(slice(0, 1))
            self.clipped = Clipped(network, layout, privacy.example_clip, example, self.objective.each)
            self.activations += self.clipped.formed
        gradient = grad(self._loss, has_aux=True) if self.clipped is None else self.clipped.summed
        self.gradients = vmap(gradient, randomness="different")
        self.captured = Captures(self._step) if examples.x.device.type == "cuda" else None

    def groups(self, task: Task, workers: int) -> list[np.ndarray]:
        """Buckets of rows `[n]` with similar numbers of steps: at least one a worker, each within the memory bound."""
        table = Timetable.of(task.batches)
        steps, batch = table.steps, table.width
        captures = self.captured is not None
        rows = 6 + self.rule.slots + len(self.rule.compares) + (self.clipped is not None)
        floats = self.layout.size * rows + (rounded_up(batch) if captures else batch) * self.activations
        fits = max(1, int(self.memory_mb * 1e6 / (4 * floats)))
        size = max(1, min(rounded_down(fits) if captures else fits, math.ceil(len(steps) / workers)))
        order = np.argsort(-steps, kind="stable")
        return [group for cut in range(0, len(order), size) for group in _even(order[cut : cut + size], steps)]

    def run(self, task: Task, rows: np.ndarray) -> torch.Tensor:
        """Trains the rows `[R]` together; returns `[R, D + 2]` in their order."""
        asked, table = len(rows), Timetable.of([task.batches[row] for row in rows.tolist()])
        to_device = self.examples.to_device
        index, mask = map(to_device, table.examples([task.plan.shards[row] for row in rows.tolist()]))
        taking, due = table.taking, table.pulled(self.rule)
        if self.captured is not None:
            rows, taking, due, index, mask = padded(rows, taking, due, index, mask)
        active, due = (
            to_device(each) for each in (taking[:, :, None].astype(np.float32), due if due.any() else due[:0])
        )
        self.network.train()
        bucket, take_step = self._bucket(task, rows, index.shape[2])
        if self.draws is not None:
            bucket.seeds.copy_(halves(task.dropout_seeds(rows)))
        bucket.augmenting.begin(rows, task.augment_seeds)
        if bucket.noise is not None:
            bucket.noise.begin(task.noise_seeds(rows), [task.batches[row].size for row in rows])
        with begun_at(task.dropout_seeds(rows[:1])[0], bucket.w.device):
            losses = self._descend(task, bucket, take_step, (index, mask, active, due), taking)
        measured = table.running_losses(losses[:, :asked].cpu().numpy())
        told = [bucket.slots[-1, :asked]] if self.rule.tells_slot else []
        return torch.cat([bucket.w[:asked], *told, bucket.w.new_tensor(measured)], dim=1)

    def _descend(
        self, task: Task, bucket: Bucket, take_step: Callable[[], None], steps: Tensors, taking: np.ndarray
    ) -> torch.Tensor:
        """Takes all steps; returns the losses before each, `[steps, R]`."""
        index, mask, active, due = steps
        losses = torch.zeros(index.shape[:2], device=bucket.w.device)
        for step in range(len(index)):
            task.watch(step, len(index))
            bucket.active.copy_(active[step])
            if len(due):
                bucket.due.copy_(due[step])
            if bucket.noise is not None:
                bucket.noise.draw(taking[step])
            bucket.index.copy_(index[step])
            bucket.mask.copy_(mask[step])
            take_step()
            losses[step] = bucket.loss
        return losses

    def _loss(  # noqa: PLR0913
        self,
        parameters: torch.Tensor,
        buffers: torch.Tensor,
        x: torch.Tensor,
        y: torch.Tensor,
        mask: torch.Tensor,
        others: tuple[Seen, ...] = (),
        counts: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, Tensors]:
        """Mean cost of one row's unmasked examples; as auxiliary output the cost again and the new buffers."""
        for layer in self.norms:
            layer.mask = mask
        views = self.layout.views(torch.cat([parameters, buffers]))
        each = self.objective.each(functional_call(self.network, views, (x,)), y, others, counts)
        loss = (each * mask).sum() / mask.sum().clamp(min=1)
        moved = [entry for layer in self.norms for entry in layer.updated or ()]
        return loss, (loss.detach(), torch.cat(moved) if moved else buffers)

    def _step(self, bucket: Bucket) -> None:
        """One step of every row on the bucket's present batch, in place."""
        parameters = self.layout.parameters
        x, y = bucket.augmenting(self.examples.inputs(bucket.index), bucket.step), self.examples.y[bucket.index]
        w, buffers = bucket.w[:, :parameters], bucket.w[:, parameters:]
        with self.draws.begin(bucket.seeds, bucket.step) if self.draws else nullcontext():
            gradient, (loss, moved) = self.gradients(w, buffers, x, y, bucket.mask, *self._beside(bucket, x))
        if bucket.noise is not None:
            gradient = bucket.noise.released(gradient)
        bucket.step += 1
        rule = bucket.rule
        direction = rule.direction(rule.clipped(gradient), w, bucket.anchor)
        rule.update(w, direction, bucket.slots, bucket.step, bucket.active)
        rule.pull(w, bucket.anchor, bucket.due)
        buffers.copy_(moved)
        bucket.loss.copy_(loss)

    def _beside(self, bucket: Bucket, x: torch.Tensor) -> tuple:
        """What else the rule's cost asks, for `x [R, B, *shape]`: what other models say, and the clients' classes."""
        if not (self.rule.compares or self.rule.counts_classes):
            return ()
        others: tuple[Seen, ...] = ()
        if self.onlookers is not None and bucket.others is not None:
            others = vmap(self.onlookers.seen, in_dims=(1, 0))(bucket.others, x)
        return others, *(() if bucket.counts is None else (bucket.counts,))

    def _bucket(self, task: Task, rows: np.ndarray, batch: int):
        """A loaded bucket and the function that takes its steps: a replayed graph on a GPU, else `_step`."""
        place = self.examples.to_device(rows)
        if self.captured is None:
            bucket = self._made(task, place, batch)
            return bucket, lambda: self._step(bucket)
        shape = len(rows), batch, task.lr is None
        bucket, replay = self.captured.get(shape, lambda: self._made(task, place, batch))
        bucket.load(task, place)
        return bucket, replay

    def _made(self, task: Task, rows: torch.Tensor, batch: int) -> Bucket:
        bucket = Bucket(task, rows, batch, self.rule.at(task.lr), self.examples)
        bucket.load(task, rows)
        if self.clipped is not None:
            bucket.noise = Noise(len(rows), self.layout.parameters, self.privacy.example_noise, rows.device)
        if task.lr is not None and self.captured is not None:
            bucket.rule = self.rule.at(bucket.lr)  # a number would stay in the graph for good
        return bucket


def _even(rows: np.ndarray, steps: np.ndarray) -> list[np.ndarray]:
    """Cuts rows (longest first) where the shortest would otherwise be padded to more than twice its steps."""
    if len(rows) and steps[rows[0]] > 2 * max(1, steps[rows[-1]]):
        short = int(np.argmax(steps[rows] * 2 < steps[rows[0]]))
        return [rows[:short], *_even(rows[short:], steps)]
    return [rows] if len(rows) else []
