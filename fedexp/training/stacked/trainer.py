"""The stacked engine: all rows of a round at once under torch.func, as many kernels for a hundred clients as for one.

Rows are sorted by their number of steps and cut in buckets that bound memory and padding; a padded example has mask 0
and a row that is done is frozen. On a GPU several steps are captured once a shape and replayed, and chains of known
layers have passes that are written out.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from fedexp.core.torch_generator import seed_torch
from fedexp.core.values import Layout
from fedexp.maths.optimizer_steps import mask_rows
from fedexp.parts.local.contract import ModelOutputs
from fedexp.training.client.activation_memory import activation_floats
from fedexp.training.client.examples import Examples
from fedexp.training.client.keyed_random import keyed_random_for, split_seed
from fedexp.training.client.objective import Objective, ReferenceModels
from fedexp.training.client.recipe import Recipe
from fedexp.training.layers.batched_pass import LayerPlan, plan_layers, treats_entries_alike
from fedexp.training.loop.trainer import Task
from fedexp.training.per_example.clipped_sum import ClippedGradientSum
from fedexp.training.stacked.batch_schedule import BatchSchedule
from fedexp.training.stacked.bucket import Bucket
from fedexp.training.stacked.buckets import Buckets, round_up_to_multiple
from fedexp.training.stacked.graph_cache import CudaGraphCache, pad_rows
from fedexp.training.stacked.norm_statistics import NormStatistics
from fedexp.training.stacked.row_groups import RowGroups, has_convolutions
from fedexp.training.stacked.step_schedule import StepArrays, StepBatch, steps_on_host

Tensors = tuple[torch.Tensor, ...]
PREFETCH_DIVISOR = 8 * 16  # an eighth of the memory for coins, which take 16 bytes each while they are drawn


class StackedTrainer:
    """Trains the rows of a group together."""

    def __init__(
        self,
        network: nn.Module,
        layout: Layout,
        examples: Examples,
        recipe: Recipe,
        memory_mb: float,
        participants: int = 0,
    ) -> None:
        """`participants` is how many rows a round usually has, `memory_mb` what rows that train together may take."""
        rule, privacy = recipe.rule, recipe.privacy
        self.network, self.layout, self.examples, self.rule = network, layout, examples, rule
        self.memory_mb = memory_mb
        self.usual_sizes = participants, 0 if rule.batch_size == "full" else rule.batch_size
        self.reference_models = ReferenceModels(network, layout) if rule.compares else None
        self.objective = Objective(recipe.loss, rule, network)
        self.norms = NormStatistics(network, layout, examples.x.device)
        self.keyed_random = keyed_random_for(network, examples.inputs(slice(0, 2)))
        if self.keyed_random is not None:
            self.keyed_random.max_prefetched = int(memory_mb * 1e6 / PREFETCH_DIVISOR)
        self.activations = activation_floats(network, examples)
        self.clipped_gradients: ClippedGradientSum | None = None
        if privacy.example_clip is not None:
            example = examples.inputs(slice(0, 1))
            self.clipped_gradients = ClippedGradientSum(
                network, layout, privacy.example_clip, example, self.objective.per_example
            )
            self.activations += self.clipped_gradients.materialised_floats
        gradient = (
            grad(self._loss, has_aux=True) if self.clipped_gradients is None else self.clipped_gradients.clipped_sum
        )
        self.gradients = vmap(gradient, randomness="different")
        self.is_eager = examples.x.device.type != "cuda"
        self.plan = self._plan_layers()
        self.activations += 0 if self.plan is None else self.plan.scratch_floats
        self.row_groups = self._group_rows()
        self.buckets = Buckets(examples, recipe, layout, self.plan, memory_mb)
        if not self.is_eager:
            self.buckets.graph_cache = CudaGraphCache(self._graph_steps, self.row_groups.shape_mb, memory_mb)
            self.buckets.keyed_random = self.keyed_random

    def _group_rows(self) -> RowGroups:
        copies = 6 + self.rule.slots + len(self.rule.compares)
        copies += self.clipped_gradients is not None or self.plan is not None
        copies += self.plan is not None and self.plan.bf16
        usual, convolves = None if self.is_eager else self.usual_sizes, has_convolutions(self.network)
        return RowGroups(self.memory_mb, self.layout.size, copies, self.activations, usual, convolves)

    def _plan_layers(self) -> LayerPlan | None:
        """Returns the plan of batched passes: on a GPU, where the rule uses only the outputs; None otherwise."""
        example = self.examples.inputs(slice(0, 1))
        is_supported = self.objective.is_loss_alone and treats_entries_alike(self.rule) and example.is_floating_point()
        if self.is_eager or self.clipped_gradients is not None or not is_supported:
            return None
        return plan_layers(self.network, self.layout, tuple(example.shape[1:]))

    def groups(self, task: Task, workers: int) -> list[np.ndarray]:
        """Splits rows into groups `[n]` of one width and similar step counts, at least one a worker."""
        return self.row_groups.split(task.batches, workers)

    def run(self, task: Task, rows: np.ndarray) -> torch.Tensor:
        """Trains the rows `[R]` together; returns `[R, D + 2]` in their order."""
        return self.row_groups.run(partial(self._run, task), rows, self.buckets.clear)

    def _run(self, task: Task, rows: np.ndarray) -> torch.Tensor:
        row_count, width = len(rows), self.row_groups.width(task.batches, rows)
        schedule = BatchSchedule.of([task.batches[row] for row in rows.tolist()], width)
        index, mask = schedule.examples([task.plan.shards[row] for row in rows.tolist()])
        flags = map(schedule.step_flags, (self.rule.pulled_steps, self.rule.first_phase))
        arrays = StepArrays(index, mask, schedule.active_steps, *flags)
        if not self.is_eager:
            rows, arrays = pad_rows(rows, arrays, self.usual_sizes)
        self.network.train()
        bucket, replay = self.buckets.get(task, rows, arrays)
        if self.keyed_random is not None:
            bucket.seeds.copy_(self.examples.to_device(split_seed(task.seeds("dropout", rows)).numpy()))
        bucket.augmenter.begin(partial(task.seeds, "augment", rows))
        if bucket.noise is not None:
            bucket.noise.begin(task.seeds("privacy", rows), [task.batches[row].size for row in rows])
        with seed_torch(task.seeds("dropout", rows[:1])[0], bucket.w.device):
            descend = self._descend if replay is None else partial(self._replay_graphs, replay=replay)
            losses = descend(task, bucket, arrays)[:, :row_count]
        last_slot = [bucket.slots[-1, :row_count]] if self.rule.finish_needs_slot else []
        results = [bucket.w[:row_count], *last_slot]
        results = [self.buckets.in_layout_order(matrix) for matrix in results]
        return torch.cat([*results, self._epoch_losses(schedule, losses)], dim=1)

    def _descend(self, task: Task, bucket: Bucket, arrays: StepArrays) -> torch.Tensor:
        """Takes all steps; returns the losses before each, `[S, R]`."""
        steps, active_steps = steps_on_host(arrays), arrays.active_steps
        losses = torch.zeros(active_steps.shape)
        for step in range(len(active_steps)):
            task.watch(step, len(active_steps))
            if bucket.noise is not None:
                bucket.noise.draw(active_steps[step])
            losses[step] = self._take_step(bucket, steps.at(step))
        return losses

    def _replay_graphs(
        self, task: Task, bucket: Bucket, arrays: StepArrays, replay: Callable[[], None]
    ) -> torch.Tensor:
        """Takes all steps by replaying CUDA graphs, without synchronising; noise is drawn before each step.

        Every row draws its noise from a generator of its own, which cannot be captured.
        """
        assert bucket.step_schedule is not None
        active_steps, steps_per_graph = arrays.active_steps, bucket.step_schedule.steps_per_graph
        losses = bucket.losses.new_zeros(
            (max(1, round_up_to_multiple(len(active_steps), steps_per_graph)), len(bucket.w))
        )
        for first in range(0, len(active_steps), steps_per_graph):
            task.watch(first, len(active_steps))
            if bucket.noise is not None:
                bucket.noise.draw(active_steps[first])
            replay()
            losses[first : first + steps_per_graph] = bucket.losses
        return losses[: max(1, len(active_steps))]

    def _epoch_losses(self, schedule: BatchSchedule, losses: torch.Tensor) -> torch.Tensor:
        """Returns the rows' losses in the first and last epoch, `[R, 2]`, from those of all steps, `[S, R]`."""
        if self.is_eager:
            return losses.new_tensor(schedule.running_losses(losses.numpy()))
        weights = self.examples.to_device(schedule.weights())
        return (torch.where(weights != 0, losses.double(), 0.0) * weights).sum(dim=1).T.to(losses.dtype)

    def _loss(  # noqa: PLR0913
        self,
        parameters: torch.Tensor,
        buffers: torch.Tensor,
        x: torch.Tensor,
        y: torch.Tensor,
        mask: torch.Tensor,
        reference_outputs: tuple[ModelOutputs, ...] = (),
        counts: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, Tensors]:
        """Mean cost of one row's unmasked examples; as auxiliary output the cost again and the new buffers."""
        self.norms.set_mask(mask)
        views = self.layout.views(torch.cat([parameters, buffers]))
        outputs = functional_call(self.network, views, (x,))
        costs = torch.where(mask, self.objective.per_example(outputs, y, reference_outputs, counts, mask), 0.0)
        loss = costs.sum() / mask.sum().clamp(min=1)
        return loss, (loss.detach(), self.norms.new_buffers(buffers))

    def _graph_steps(self, bucket: Bucket) -> None:
        """Takes the next steps of every row in place; this is what a CUDA graph captures."""
        assert bucket.step_schedule is not None
        steps = bucket.step_schedule.next_steps()
        if bucket.batched_pass is None or bucket.graph_inputs is None:
            losses = [self._take_step(bucket, steps.at(step)) for step in range(bucket.step_schedule.steps_per_graph)]
        else:
            labels, losses = self.examples.y[steps.examples], []
            for step, x in enumerate(bucket.graph_inputs.of(steps)):
                if self.keyed_random is not None:
                    self.keyed_random.begin_prefetched(bucket.seeds, steps.steps_before, step)
                gradient_and_loss = self._manual_gradient(bucket, steps.at(step), x, labels[step])
                losses.append(self._update_rows(bucket, steps.at(step), *gradient_and_loss))
            bucket.batched_pass.release()  # what its layers keep is the graph's, and another graph may take its place
            if self.keyed_random is not None:
                self.keyed_random.prefetched = None  # its coins, too
        torch.stack(losses, out=bucket.losses)
        bucket.step_schedule.advance()

    def _take_step(self, bucket: Bucket, step: StepBatch) -> torch.Tensor:
        """Takes one step of every row, in place; returns the losses `[R]` before it."""
        parameters, mask = self.layout.parameters, step.share > 0
        x, y = bucket.augmenter(self.examples.inputs(step.examples), step.steps_before), self.examples.y[step.examples]
        w, buffers = bucket.w[:, :parameters], bucket.w[:, parameters:]
        with self.keyed_random.begin(bucket.seeds, step.steps_before) if self.keyed_random else nullcontext():
            gradient, (loss, new_buffers) = self.gradients(
                w, buffers, x, y, mask, *self._extra_cost_arguments(bucket, x)
            )
        if bucket.noise is not None:
            gradient = bucket.noise.privatise(mask_rows(gradient, mask.any(dim=1, keepdim=True)))
        self._update_rows(bucket, step, mask_rows(gradient, step.active), loss)
        if buffers.numel():
            buffers.copy_(new_buffers)
        return loss

    def _manual_gradient(self, bucket: Bucket, step: StepBatch, x: torch.Tensor, y: torch.Tensor) -> Tensors:
        """Returns gradients `[R, P]` and losses `[R]` by batched passes without autograd; moves the buffers."""
        assert bucket.batched_pass is not None
        with torch.no_grad():
            outputs = bucket.batched_pass.forward(x, step.share)
            with self.keyed_random or nullcontext():  # a loss may draw, too
                loss, output_grad = self.objective.grads(outputs, y, step.share)
            bucket.batched_pass.backward(output_grad)
        return bucket.gradient, loss

    def _update_rows(self, bucket: Bucket, step: StepBatch, gradient: torch.Tensor, loss: torch.Tensor) -> torch.Tensor:
        """Updates all rows by their gradients `[R, P]`, in place; returns the losses `[R]` unchanged."""
        w, rule = bucket.w[:, : self.layout.parameters], bucket.rule
        active = bucket.phases.moving(step.first_phase, step.active)
        gradient = gradient if active is step.active else mask_rows(gradient, active)
        direction = rule.direction(rule.clip_gradient(gradient), w, bucket.anchor)
        rule.update(w, direction, bucket.slots, step.steps_after, active)
        rule.pull(w, bucket.anchor, step.pull_mask)
        return loss

    def _extra_cost_arguments(self, bucket: Bucket, x: torch.Tensor) -> tuple:
        """Returns the extra arguments of the rule's cost for `x [R, B, *shape]`: reference outputs, class counts."""
        if not (self.rule.compares or self.rule.counts_classes):
            return ()
        reference_outputs: tuple[ModelOutputs, ...] = ()
        if self.reference_models is not None and bucket.reference_rows is not None:
            reference_outputs = vmap(self.reference_models.evaluate, in_dims=(1, 0))(bucket.reference_rows, x)
        return reference_outputs, *(() if bucket.counts is None else (bucket.counts,))
