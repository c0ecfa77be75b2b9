"""Makes and loads the stacked engine's buckets; on a GPU those of captured steps are kept. Legend: R rows, B batch."""

from collections.abc import Callable

import numpy as np
import torch

from fedexp.core.values import Layout
from fedexp.training.client.examples import Examples
from fedexp.training.client.keyed_random import KeyedRandom
from fedexp.training.client.recipe import Recipe
from fedexp.training.layers.batched_pass import LayerPlan, build_passes
from fedexp.training.loop.trainer import Task
from fedexp.training.per_example.clipped_sum import Noise
from fedexp.training.stacked.bucket import Bucket
from fedexp.training.stacked.graph_cache import (
    CudaGraphCache,
    GraphShape,
    choose_steps_per_graph,
    round_up_size,
)
from fedexp.training.stacked.graph_inputs import GraphInputs
from fedexp.training.stacked.step_schedule import StepArrays, StepSchedule, pack_steps

MIN_STEPS = 64  # steps that a bucket on a GPU has room for, at least: those of a capture's warm-up, too


class Buckets:
    """Creates the buckets of one trainer. `graph_cache` is set on a GPU, `keyed_random` where the network draws."""

    def __init__(
        self, examples: Examples, recipe: Recipe, layout: Layout, plan: LayerPlan | None, memory_mb: float
    ) -> None:
        self.examples, self.recipe, self.layout, self.plan = examples, recipe, layout, plan
        self.memory_mb = memory_mb
        self.graph_cache: CudaGraphCache | None = None
        self.keyed_random: KeyedRandom | None = None
        self.order: torch.Tensor | None = None
        self.inverse_order: torch.Tensor | None = None
        if plan is not None:
            positions = torch.cat([plan.order, torch.arange(layout.parameters, layout.size)]).to(examples.x.device)
            self.order, self.inverse_order = positions, positions.argsort()

    def clear(self) -> None:
        """Frees all captured steps and what they hold."""
        if self.graph_cache is not None:
            self.graph_cache.clear()

    def in_layout_order(self, rows: torch.Tensor) -> torch.Tensor:
        """Reorders rows `[R, D]`, or their trainable part `[R, P]`, from the passes' order to the layout's."""
        return rows if self.inverse_order is None else rows.index_select(1, self.inverse_order[: rows.shape[1]])

    def get(self, task: Task, rows: np.ndarray, arrays: StepArrays) -> tuple[Bucket, Callable[[], None] | None]:
        """Returns a loaded bucket for the rows at positions `[R]` of a task; on a GPU also the replay of its steps."""
        positions, steps, batch = self.examples.to_device(rows), len(arrays.examples), arrays.examples.shape[2]
        if self.graph_cache is None:
            return self.make_bucket(task, positions), None
        steps_per_graph = 1 if self.recipe.privacy.example_clip is not None else choose_steps_per_graph(steps)
        max_steps = max(MIN_STEPS, round_up_size(round_up_to_multiple(steps, steps_per_graph)))
        shape = GraphShape(len(rows), batch, task.lr is not None, steps_per_graph, max_steps)
        bucket, replay = self.graph_cache.get(shape, lambda: self._prepare_bucket(task, positions, shape))
        bucket.load(task, positions)
        assert bucket.step_schedule is not None
        bucket.step_schedule.load(
            self.examples.to_device(pack_steps(arrays, round_up_to_multiple(steps, steps_per_graph)))
        )
        return bucket, replay

    def make_bucket(self, task: Task, positions: torch.Tensor) -> Bucket:
        """Returns a new bucket, loaded with the rows at the positions `[R]` of a task."""
        rule, privacy = self.recipe.rule, self.recipe.privacy
        bucket = Bucket(task, positions, rule.at(task.lr), self.examples, self.layout, self.order)
        bucket.load(task, positions)
        if privacy.example_clip is not None:
            bucket.noise = Noise(len(positions), self.layout.parameters, privacy.example_noise, positions.device)
        return bucket

    def _prepare_bucket(self, task: Task, positions: torch.Tensor, shape: GraphShape) -> Bucket:
        """Returns a new GPU bucket with all tensors that captured steps write to."""
        bucket, (rows, batch, _, steps_per_graph, max_steps) = self.make_bucket(task, positions), shape
        if task.lr is not None:
            bucket.rule = self.recipe.rule.at(bucket.lr)  # a number would stay in the graph for good
        bucket.step_schedule = StepSchedule(max_steps, rows, batch, steps_per_graph, self.examples)
        bucket.losses = torch.zeros((steps_per_graph, rows), device=positions.device)
        if self.plan is not None:
            bucket.gradient = torch.zeros_like(bucket.anchor)
            bucket.batched_pass = build_passes(
                self.plan, bucket.w, bucket.gradient, batch, self.memory_mb, self.keyed_random
            )
            sizes = steps_per_graph, rows, batch
            bucket.graph_inputs = GraphInputs(
                self.examples, bucket.augmenter, bucket.batched_pass.layers[0], self.memory_mb, sizes
            )
        return bucket


def round_up_to_multiple(steps: int, divisor: int) -> int:
    """Returns the smallest multiple of `divisor` that is at least `steps`."""
    return -(-steps // divisor) * divisor
