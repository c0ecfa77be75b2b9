"""The stacked engine: all rows of a round at once under torch.func, as many kernels for a hundred clients as for one.

Rows are sorted by their number of steps and cut in buckets that bound memory and padding; a padded example has mask 0
and a row that is done is frozen. On a GPU several steps are captured once a shape and replayed, and chains of known
layers have passes that are written out.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from fedexp.core.torch_generator import begun_at
from fedexp.core.values import Layout
from fedexp.maths.optimizer_steps import mask_rows
from fedexp.parts.layers import BatchNorm
from fedexp.parts.local.contract import Seen
from fedexp.training.activations import activation_floats
from fedexp.training.agenda import Turns, turns_on_host
from fedexp.training.bucket import Bucket
from fedexp.training.buckets import Buckets, whole
from fedexp.training.captures import Arrays, Captures, padded, rounded_down, rounded_up
from fedexp.training.draws import drawing, halves
from fedexp.training.examples import Examples
from fedexp.training.loop import Task
from fedexp.training.losses import Objective
from fedexp.training.onlookers import Onlookers
from fedexp.training.private import Clipped
from fedexp.training.recipe import Recipe
from fedexp.training.stacked_plan import LayerPlan, planned, treats_alike
from fedexp.training.timetable import Timetable

Tensors = tuple[torch.Tensor, ...]
DRAWN_AT_ONCE = 8 * 16  # an eighth of the memory for coins, which take 16 bytes each while they are drawn


class Stacked:
    """Trains the rows of a group together."""

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
        if self.draws is not None:
            self.draws.most = int(memory_mb * 1e6 / DRAWN_AT_ONCE)
        self.activations = activation_floats(network, examples)
        self.clipped: Clipped | None = None
        if privacy.example_clip is not None:
            example = examples.inputs(slice(0, 1))
            self.clipped = Clipped(network, layout, privacy.example_clip, example, self.objective.each)
            self.activations += self.clipped.formed
        gradient = grad(self._loss, has_aux=True) if self.clipped is None else self.clipped.summed
        self.gradients = vmap(gradient, randomness="different")
        self.plain = examples.x.device.type != "cuda"
        self.plan = self._planned()
        self.activations += 0 if self.plan is None else self.plan.columns
        self.buckets = Buckets(examples, recipe, layout, self.plan, memory_mb)
        if not self.plain:
            self.buckets.captured, self.buckets.draws = Captures(self._steps), self.draws

    def _planned(self) -> LayerPlan | None:
        """Returns the plan of batched passes: on a GPU, where the rule uses only the outputs; None otherwise."""
        example = self.examples.inputs(slice(0, 1))
        known = self.objective.plain and treats_alike(self.rule) and example.is_floating_point()
        if self.plain or self.clipped is not None or not known:
            return None
        return planned(self.network, self.layout, tuple(example.shape[1:]))

    def groups(self, task: Task, workers: int) -> list[np.ndarray]:
        """Splits rows into buckets `[n]` of similar step counts: at least one a worker, each within the memory."""
        table = Timetable.of(task.batches)
        steps, batch = table.steps, table.width
        captures = not self.plain
        rows = 6 + self.rule.slots + len(self.rule.compares) + (self.clipped is not None or self.plan is not None)
        rows += self.plan is not None and self.plan.lowered
        floats = self.layout.size * rows + (rounded_up(batch) if captures else batch) * self.activations
        fits = max(1, int(self.memory_mb * 1e6 / (4 * floats)))
        size = max(1, min(rounded_down(fits) if captures else fits, math.ceil(len(steps) / workers)))
        order = np.argsort(-steps, kind="stable")
        return [group for cut in range(0, len(order), size) for group in _even(order[cut : cut + size], steps)]

    def run(self, task: Task, rows: np.ndarray) -> torch.Tensor:
        """Trains the rows `[R]` together; returns `[R, D + 2]` in their order."""
        asked, table = len(rows), Timetable.of([task.batches[row] for row in rows.tolist()])
        index, mask = table.examples([task.plan.shards[row] for row in rows.tolist()])
        arrays = index, mask, table.taking, table.pulled(self.rule)
        if not self.plain:
            rows, arrays = padded(rows, *arrays)
        self.network.train()
        bucket, replay = self.buckets.get(task, rows, arrays)
        if self.draws is not None:
            bucket.seeds.copy_(self.examples.to_device(halves(task.dropout_seeds(rows)).numpy()))
        bucket.augmenting.begin(rows, task.augment_seeds)
        if bucket.noise is not None:
            bucket.noise.begin(task.noise_seeds(rows), [task.batches[row].size for row in rows])
        with begun_at(task.dropout_seeds(rows[:1])[0], bucket.w.device):
            descend = self._descend if replay is None else partial(self._replayed, replay=replay)
            losses = descend(task, bucket, arrays)[:, :asked]
        told = [bucket.slots[-1, :asked]] if self.rule.tells_slot else []
        kept = [bucket.w[:asked], *told]
        kept = [self.buckets.as_sent(each) for each in kept]
        return torch.cat([*kept, self._measured(table, losses)], dim=1)

    def _descend(self, task: Task, bucket: Bucket, arrays: Arrays) -> torch.Tensor:
        """Takes all steps; returns the losses before each, `[S, R]`."""
        turns, taking = turns_on_host(*arrays), arrays[2]
        losses = torch.zeros(taking.shape)
        for step in range(len(taking)):
            task.watch(step, len(taking))
            if bucket.noise is not None:
                bucket.noise.draw(taking[step])
            losses[step] = self._step(bucket, turns.at(step))
        return losses

    def _replayed(self, task: Task, bucket: Bucket, arrays: Arrays, replay: Callable[[], None]) -> torch.Tensor:
        """Takes all steps by replaying CUDA graphs, without synchronising; noise is drawn before each step.

        Every row draws its noise from a generator of its own, which cannot be captured.
        """
        assert bucket.agenda is not None
        taking, together = arrays[2], bucket.agenda.at_once
        losses = bucket.losses.new_zeros((max(1, whole(len(taking), together)), len(bucket.w)))
        for first in range(0, len(taking), together):
            task.watch(first, len(taking))
            if bucket.noise is not None:
                bucket.noise.draw(taking[first])
            replay()
            losses[first : first + together] = bucket.losses
        return losses[: max(1, len(taking))]

    def _measured(self, table: Timetable, losses: torch.Tensor) -> torch.Tensor:
        """Returns the rows' losses in the first and last epoch, `[R, 2]`, from those of all steps, `[S, R]`."""
        if self.plain:
            return losses.new_tensor(table.running_losses(losses.numpy()))
        weights = self.examples.to_device(table.weights())
        return (torch.where(weights != 0, losses.double(), 0.0) * weights).sum(dim=1).T.to(losses.dtype)

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
        loss = torch.where(mask, each, 0.0).sum() / mask.sum().clamp(min=1)
        moved = [entry for layer in self.norms for entry in layer.updated or ()]
        return loss, (loss.detach(), torch.cat(moved) if moved else buffers)

    def _steps(self, bucket: Bucket) -> None:
        """Takes the next steps of every row in place; this is what a CUDA graph captures."""
        assert bucket.agenda is not None
        turns = bucket.agenda.turns()
        if bucket.passes is None or bucket.inputs is None:
            losses = [self._step(bucket, turns.at(step)) for step in range(bucket.agenda.at_once)]
        else:
            labels, losses = self.examples.y[turns.examples], []
            for step, x in enumerate(bucket.inputs.of(turns)):
                if self.draws is not None:
                    self.draws.begin_one_of(bucket.seeds, turns.before, step)
                found = self._by_hand(bucket, turns.at(step), x, labels[step])
                losses.append(self._move(bucket, turns.at(step), *found))
            if self.draws is not None:
                self.draws.ahead = None  # its coins are the graph's
        torch.stack(losses, out=bucket.losses)
        bucket.agenda.advance()

    def _step(self, bucket: Bucket, turn: Turns) -> torch.Tensor:
        """Takes one step of every row, in place; returns the losses `[R]` before it."""
        parameters, mask = self.layout.parameters, turn.share > 0
        x, y = bucket.augmenting(self.examples.inputs(turn.examples), turn.before), self.examples.y[turn.examples]
        w, buffers = bucket.w[:, :parameters], bucket.w[:, parameters:]
        with self.draws.begin(bucket.seeds, turn.before) if self.draws else nullcontext():
            gradient, (loss, moved) = self.gradients(w, buffers, x, y, mask, *self._beside(bucket, x))
        if bucket.noise is not None:
            gradient = bucket.noise.released(mask_rows(gradient, mask.any(dim=1, keepdim=True)))
        self._move(bucket, turn, mask_rows(gradient, turn.active), loss)
        if buffers.numel():
            buffers.copy_(moved)
        return loss

    def _by_hand(self, bucket: Bucket, turn: Turns, x: torch.Tensor, y: torch.Tensor) -> Tensors:
        """Returns gradients `[R, P]` and losses `[R]` by batched passes without autograd; moves the buffers."""
        assert bucket.passes is not None
        with torch.no_grad():
            outputs = bucket.passes.forward(x, turn.share)
            with self.draws or nullcontext():  # a loss may draw, too
                loss, slope = self.objective.slopes(outputs, y, turn.share)
            bucket.passes.backward(slope)
        return bucket.gradient, loss

    def _move(self, bucket: Bucket, turn: Turns, gradient: torch.Tensor, loss: torch.Tensor) -> torch.Tensor:
        """Updates all rows by their gradients `[R, P]`, in place; returns the losses `[R]` unchanged."""
        w, rule = bucket.w[:, : self.layout.parameters], bucket.rule
        direction = rule.direction(rule.clipped(gradient), w, bucket.anchor)
        rule.update(w, direction, bucket.slots, turn.number, turn.active)
        rule.pull(w, bucket.anchor, turn.due)
        return loss

    def _beside(self, bucket: Bucket, x: torch.Tensor) -> tuple:
        """Returns the extra arguments of the rule's cost for `x [R, B, *shape]`: reference outputs, class counts."""
        if not (self.rule.compares or self.rule.counts_classes):
            return ()
        others: tuple[Seen, ...] = ()
        if self.onlookers is not None and bucket.others is not None:
            others = vmap(self.onlookers.seen, in_dims=(1, 0))(bucket.others, x)
        return others, *(() if bucket.counts is None else (bucket.counts,))


def _even(rows: np.ndarray, steps: np.ndarray) -> list[np.ndarray]:
    """Splits rows (longest first) where the shortest would be padded to more than twice its steps."""
    if len(rows) and steps[rows[0]] > 2 * max(1, steps[rows[-1]]):
        short = int(np.argmax(steps[rows] * 2 < steps[rows[0]]))
        return [rows[:short], *_even(rows[short:], steps)]
    return [rows] if len(rows) else []
