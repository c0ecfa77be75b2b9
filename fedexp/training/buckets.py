"""Makes and loads the stacked engine's buckets; on a GPU those of captured steps are kept. Legend: R rows, B batch."""

from collections.abc import Callable

import numpy as np
import torch

from fedexp.core.values import Layout
from fedexp.training.agenda import Agenda, packed
from fedexp.training.bucket import Bucket
from fedexp.training.captures import Arrays, Captures, Shape, at_once, rounded_up
from fedexp.training.draws import Draws
from fedexp.training.examples import Examples
from fedexp.training.loop import Task
from fedexp.training.private import Noise
from fedexp.training.recipe import Recipe
from fedexp.training.stacked_inputs import StackedInputs
from fedexp.training.stacked_pass import Binding
from fedexp.training.stacked_plan import LayerPlan

ROOM = 64  # steps that a bucket on a GPU has room for, at least: those of a capture's warm-up, too


class Buckets:
    """Creates the buckets of one trainer. `graph_cache` is set on a GPU, `keyed_random` where the network draws."""

    def __init__(
        self, examples: Examples, recipe: Recipe, layout: Layout, plan: LayerPlan | None, memory_mb: float
    ) -> None:
        self.examples, self.recipe, self.layout, self.plan = examples, recipe, layout, plan
        self.memory_mb = memory_mb
        self.captured: Captures | None = None
        self.draws: Draws | None = None
        self.order: torch.Tensor | None = None
        self.back: torch.Tensor | None = None
        if plan is not None:
            places = torch.cat([plan.order, torch.arange(layout.parameters, layout.size)]).to(examples.x.device)
            self.order, self.back = places, places.argsort()

    def as_sent(self, rows: torch.Tensor) -> torch.Tensor:
        """Reorders rows `[R, D]`, or their trainable part `[R, P]`, from the passes' order to the layout's."""
        return rows if self.back is None else rows.index_select(1, self.back[: rows.shape[1]])

    def get(self, task: Task, rows: np.ndarray, arrays: Arrays) -> tuple[Bucket, Callable[[], None] | None]:
        """Returns a loaded bucket for the rows at positions `[R]` of a task; on a GPU also the replay of its steps."""
        place, steps, batch = self.examples.to_device(rows), len(arrays[0]), arrays[0].shape[2]
        if self.captured is None:
            return self.made(task, place), None
        together = 1 if self.recipe.privacy.example_clip is not None else at_once(steps)
        room = max(ROOM, rounded_up(whole(steps, together)))
        shape = len(rows), batch, type(task.lr), together, room
        bucket, replay = self.captured.get(shape, lambda: self._prepared(task, place, shape))
        bucket.load(task, place)
        assert bucket.agenda is not None
        bucket.agenda.load(self.examples.to_device(packed(*arrays, whole(steps, together))))
        return bucket, replay

    def made(self, task: Task, place: torch.Tensor) -> Bucket:
        """Returns a new bucket, loaded with the rows at the positions `[R]` of a task."""
        rule, privacy, each = self.recipe.rule, self.recipe.privacy, isinstance(task.lr, torch.Tensor)
        bucket = Bucket(task, place, rule if each else rule.at(task.lr), self.examples, self.order)
        bucket.load(task, place)
        if each:
            bucket.rule = rule.at(bucket.lr)
        if privacy.example_clip is not None:
            bucket.noise = Noise(len(place), self.layout.parameters, privacy.example_noise, place.device)
        return bucket

    def _prepared(self, task: Task, place: torch.Tensor, shape: Shape) -> Bucket:
        """Returns a new GPU bucket with all tensors that captured steps write to."""
        bucket, (rows, batch, _, together, room) = self.made(task, place), shape
        if task.lr is not None:
            bucket.rule = self.recipe.rule.at(bucket.lr)  # a number would stay in the graph for good
        bucket.agenda = Agenda(room, rows, batch, together, self.examples)
        bucket.losses = torch.zeros((together, rows), device=place.device)
        if self.plan is not None:
            bucket.gradient = torch.zeros_like(bucket.anchor)
            binding = Binding(bucket.w, bucket.gradient, batch, self.memory_mb)
            bucket.passes = binding.made(self.plan, self.layout, self.draws)
            bucket.inputs = StackedInputs(self.examples, bucket.augmenting, bucket.passes, self.memory_mb)
            bucket.inputs.prepare(together, rows, batch)
        return bucket


def whole(steps: int, together: int) -> int:
    """Returns the smallest multiple of `divisor` that is at least `steps`."""
    return -(-steps // together) * together
