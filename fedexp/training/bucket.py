"""What the stacked engine holds of the rows that train together.

Legend: R rows, B batch, D entries of a row, M models that the rule compares with, K classes.
"""

import torch

from fedexp.parts.local.contract import LocalRule
from fedexp.training.augmenting import Augmenting
from fedexp.training.examples import Examples
from fedexp.training.loop import Task
from fedexp.training.private import Noise


class Bucket:
    """The tensors of the rows that train together: `w [R, D]`, optimizer slots, the present batch and its mask.

    `active` and `due [R, 1]` say which rows take the present step and which the rule pulls after it. `noise` is there
    only in private training, `others [M, R, D]` and `counts [R, K]` where the rule asks for them. `rule` is the rule at
    its rate; `lr` is that rate where a captured step must follow it.
    """

    def __init__(self, task: Task, place: torch.Tensor, batch: int, rule: LocalRule, examples: Examples) -> None:
        """A bucket for the rows at the positions `place [R]` of a task."""
        rows, device, parameters = len(place), examples.x.device, task.anchor.shape[1]
        each = isinstance(task.lr, torch.Tensor)
        self.rule = rule
        self.lr = torch.zeros((rows, 1) if each else (), dtype=torch.float32 if each else torch.float64, device=device)
        self.augmenting = Augmenting(examples, rows)
        self.w = torch.zeros((rows, task.start.shape[1]), device=device)
        self.anchor = torch.zeros((rows, parameters), device=device)
        self.slots = torch.zeros((rule.slots, rows, parameters), device=device)
        self.step = torch.zeros((), device=device)
        self.seeds = torch.zeros((2, rows), dtype=torch.int32, device=device)
        self.index = torch.zeros((rows, batch), dtype=torch.int64, device=device)
        self.mask = torch.zeros((rows, batch), dtype=torch.bool, device=device)
        self.active = torch.zeros((rows, 1), device=device)
        self.due = torch.zeros((rows, 1), device=device)
        self.noise: Noise | None = None
        self.others = None if task.others is None else torch.zeros_like(task.others.index_select(1, place))
        self.counts = None if task.counts is None else torch.zeros_like(task.counts[place])
        self.loss = torch.zeros(rows, device=device)

    def load(self, task: Task, rows: torch.Tensor) -> None:
        """Begins a round with the rows at the positions `[R]` of a task."""
        torch.index_select(task.start, 0, rows, out=self.w)
        torch.index_select(task.anchor, 0, rows, out=self.anchor)
        if isinstance(task.lr, torch.Tensor):
            torch.index_select(task.lr, 0, rows, out=self.lr)
        elif task.lr is not None:
            self.lr.fill_(task.lr)
        if self.others is not None and task.others is not None:
            torch.index_select(task.others, 1, rows, out=self.others)
        if self.counts is not None and task.counts is not None:
            torch.index_select(task.counts, 0, rows, out=self.counts)
        self.due.zero_()
        self.rule.fill(self.slots, self.anchor)
        self.step.zero_()
