"""Losses of many models, or mixtures of them, on the same examples, for Shapley values and robust rules.

Legend: R mixtures, M models mixed, D entries of a row, S examples, B examples of a batch or a part, F outputs
of a first layer, K classes.
"""

import weakref
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from fedexp.core.values import Layout
from fedexp.parts.loss.contract import Loss
from fedexp.scoring.side_by_side import BatchedEvaluator, make_evaluator
from fedexp.training.client.examples import Examples
from fedexp.training.workers.pool import MIXTURES, Work

BLOCK = 500  # examples of one job
MODELS_PER_PASS = 8  # convolutional models in one pass on a CPU; more do not fit into its second-level cache
MIXTURES_PER_PASS = 32  # mixtures in one pass on a CPU where the outputs of the first layer are mixed
PART_SIZE = 100  # examples of one pass of first layers: their 128 outputs for 32 mixtures stay in a second-level cache
KEPT_FLOATS = 2**26  # outputs of first layers in all; if there are more, none are kept
FLOATS = 2**24  # activations of one pass on a CPU


class FirstLayerCache:
    """Caches the first layer's outputs of models `rows [M, D]` for blocks of examples until the rows are freed.

    Shapley values evaluate hundreds of mixtures of the same few models on the same examples, in many small calls. Each
    process keeps the blocks of examples that it happens to work on.
    """

    def __init__(self, evaluator: BatchedEvaluator) -> None:
        self.evaluator = evaluator
        self.rows: Callable[[], torch.Tensor | None] = lambda: None
        self.blocks: dict[tuple[Examples, int, int], list[torch.Tensor]] = {}

    def outputs(self, rows: torch.Tensor, examples: Examples, block: slice) -> list[torch.Tensor]:
        """The outputs `[M, B, F]` of `rows [M, D]` for each part of the block, in order."""
        if self.rows() is not rows:
            self.blocks.clear()
            self.rows = weakref.ref(rows, lambda _: self.blocks.clear())
        key = (examples, block.start, block.stop)
        values = self.blocks.get(key) or self._compute(rows, examples, block)
        if len(examples) * values[0][:, 0].numel() <= KEPT_FLOATS:
            self.blocks[key] = values
        return values

    def _compute(self, rows: torch.Tensor, examples: Examples, block: slice) -> list[torch.Tensor]:
        starts = range(block.start, block.stop, PART_SIZE)
        parts = (examples.inputs(slice(start, min(start + PART_SIZE, block.stop))) for start in starts)
        return [self.evaluator.first_layer(rows, x) for x in parts]


class MixtureScorer:
    """Divides the evaluation of mixtures into jobs that any idle worker can take."""

    def __init__(self, network: nn.Module, layout: Layout, floats: int, examples: Examples, loss: Loss) -> None:
        """`floats` are the activations of one of the `examples`, which are like those that will be evaluated."""
        self.evaluator = make_evaluator(network, layout, examples.shape)
        self.first_layer = (
            FirstLayerCache(self.evaluator)
            if isinstance(self.evaluator, BatchedEvaluator) and self.evaluator.linear_first
            else None
        )
        spacious = examples.x.device.type == "cuda"
        self.models_per_pass = 128 if self.first_layer or spacious else MODELS_PER_PASS
        self.mixtures_per_pass = 1024 if spacious else MIXTURES_PER_PASS
        self.budget = 2**28 if spacious else FLOATS
        self.floats, self.loss = floats, loss

    def work(self, mix: torch.Tensor | None, rows: torch.Tensor, examples: Examples, total: int) -> Work:
        """Jobs for the models `mix [R, M] @ rows [M, D]`, or for each row: a loss sum for each block and model.

        The effort of a job is its number of models times the share of its examples in `total`.
        """
        models = np.arange(len(rows if mix is None else mix))
        blocks = [slice(start, min(start + BLOCK, len(examples))) for start in range(0, len(examples), BLOCK)]
        work = Work(torch.zeros(len(blocks) * len(models), dtype=torch.float64, device=rows.device), kind=MIXTURES)
        work.effort = np.repeat([(block.stop - block.start) / total for block in blocks], len(models))
        for some in self._groups(mix, len(models)):
            group = (None, rows[some]) if mix is None else (mix[some], rows)
            for number, block in enumerate(blocks):
                positions = number * len(models) + models[some]
                work.jobs.append((positions, lambda group=group, block=block: self._sums(*group, examples, block)))
        return work

    def means(self, work: Work, models: int, examples: int) -> torch.Tensor:
        """The mean losses over this many examples once the work is done, float64 [R]."""
        return work.out.view(-1, models).sum(dim=0) / examples

    def _groups(self, mix: torch.Tensor | None, models: int) -> list[slice]:
        """Which models share a job: all of them if their first layer is evaluated together."""
        size = models if mix is not None and self.first_layer else self.models_per_pass
        return [slice(start, start + size) for start in range(0, models, size)]

    def _sums(self, mix: torch.Tensor | None, rows: torch.Tensor, examples: Examples, block: slice) -> torch.Tensor:
        with torch.inference_mode():
            if mix is not None and self.first_layer:
                return self._sums_by_first_layer(self.first_layer, mix, rows, examples, block)
            return self._sums_by_whole_models(mix, rows, examples, block)

    def _sums_by_first_layer(
        self, first: FirstLayerCache, mix: torch.Tensor, rows: torch.Tensor, examples: Examples, block: slice
    ) -> torch.Tensor:
        first_outputs, labels = first.outputs(rows, examples, block), examples.y[block]
        sums = torch.zeros(len(mix), dtype=torch.float64, device=rows.device)
        for start in range(0, len(mix), self.mixtures_per_pass):
            some = slice(start, start + self.mixtures_per_pass)
            entries, offset = first.evaluator.later_entries(mix[some], rows), 0
            for part in first_outputs:
                logits = first.evaluator.later_logits(entries, mix[some], part)
                sums[some] += loss_sums(self.loss, logits, labels[offset : offset + part.shape[1]])
                offset += part.shape[1]
        return sums

    def _sums_by_whole_models(
        self, mix: torch.Tensor | None, rows: torch.Tensor, examples: Examples, block: slice
    ) -> torch.Tensor:
        models = len(rows if mix is None else mix)
        sums = torch.zeros(models, dtype=torch.float64, device=rows.device)
        chunk = max(8, self.budget // (self.floats * models))
        for start in range(block.start, block.stop, chunk):
            part = slice(start, min(start + chunk, block.stop))
            sums += loss_sums(self.loss, self.evaluator.logits(mix, rows, examples.inputs(part)), examples.y[part])
        return sums


def loss_sums(loss: Loss, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Summed loss `[R]`, float64, of `logits [R, B, *outputs]` on the same targets `labels [B, ...]`."""
    losses = loss.evaluation_losses(logits.flatten(0, 1), labels.repeat(len(logits), *[1] * (labels.dim() - 1)))
    return losses.view(len(logits), -1).double().sum(dim=1)
