"""The tensors of the rows that the stacked engine trains together.

Legend: R rows, B batch, D entries of a row, P trainable ones, M models that the rule compares with, K classes, k steps
that are captured together.
"""

import torch

from fedexp.core.device_arrays import gather_rows
from fedexp.core.values import Layout
from fedexp.parts.local.contract import LocalRule
from fedexp.training.client.augmentation import BatchAugmenter
from fedexp.training.client.examples import Examples
from fedexp.training.client.phases import Phases
from fedexp.training.layers.layer_pass import ChainPass
from fedexp.training.loop.trainer import Task
from fedexp.training.per_example.clipped_sum import Noise
from fedexp.training.stacked.graph_inputs import GraphInputs
from fedexp.training.stacked.step_schedule import StepSchedule


class Bucket:
    """The tensors of the rows that train together: `w [R, D]`, their anchors and optimizer slots.

    `noise` is there only in private training, `reference_rows [M, R, D]` and `counts [R, K]` where the rule asks for
    them. `rule` is the rule at its rate; `lr` is that rate where captured steps must follow it. On a GPU there are the
    `step_schedule` and the `losses [k, R]` of the last replay. With passes that are written out the entries of all rows
    stand in their `order [D]`, and the `gradient [R, P]` has its place.
    """

    def __init__(
        self,
        task: Task,
        positions: torch.Tensor,
        rule: LocalRule,
        examples: Examples,
        layout: Layout,
        order: torch.Tensor | None,
    ) -> None:
        """A bucket for the rows at the positions `positions [R]` of a task, to be `load`ed."""
        rows, device, parameters = len(positions), examples.x.device, len(task.anchor[0])
        self.rule, self.order = rule, order
        self.lr = torch.zeros((), dtype=torch.float64, device=device)
        self.augmenter = BatchAugmenter(examples, rows)
        self.w = torch.zeros((rows, len(task.start[0])), device=device)
        self.anchor = torch.zeros((rows, parameters), device=device)
        self.slots = torch.zeros((rule.slots, rows, parameters), device=device)
        self.seeds = torch.zeros((2, rows), dtype=torch.int32, device=device)
        self.phases = Phases(rule, layout, self.w, order)
        self.noise: Noise | None = None
        self.reference_rows = (
            None if task.reference_rows is None else torch.zeros_like(task.reference_rows.index_select(1, positions))
        )
        self.counts = None if task.counts is None else torch.zeros_like(task.counts[positions])
        self.step_schedule: StepSchedule | None = None
        self.losses = torch.zeros((0, rows), device=device)
        self.gradient = torch.zeros((0, parameters), device=device)
        self.batched_pass: ChainPass | None = None
        self.graph_inputs: GraphInputs | None = None

    def load(self, task: Task, rows: torch.Tensor) -> None:
        """Begins a round with the rows at the positions `[R]` of a task."""
        parameters = self.anchor.shape[1]
        if self.order is None:
            gather_rows(task.start, rows, out=self.w)
            gather_rows(task.anchor, rows, out=self.anchor)
        else:
            torch.index_select(gather_rows(task.start, rows), 1, self.order, out=self.w)
            torch.index_select(gather_rows(task.anchor, rows), 1, self.order[:parameters], out=self.anchor)
        if task.lr is not None:
            self.lr.fill_(task.lr)
        if self.reference_rows is not None and task.reference_rows is not None:
            torch.index_select(task.reference_rows, 1, rows, out=self.reference_rows)
        if self.counts is not None and task.counts is not None:
            torch.index_select(task.counts, 0, rows, out=self.counts)
        self.rule.fill(self.slots, self.anchor)
