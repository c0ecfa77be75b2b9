"""A cache of the first layer's outputs for the models of a round, as long as they are evaluated.

Shapley values evaluate hundreds of mixtures of the same few models on the same examples, in many small calls. Each
process keeps the blocks of examples that it happens to work on. Legend: M models, S examples, B examples of a part, F
outputs of the layer.
"""

import weakref
from collections.abc import Callable

import torch

from fedexp.scoring.side_by_side import BatchedEvaluator
from fedexp.training.client.examples import Examples

PART_SIZE = 100  # examples of one pass: their 128 outputs for 32 mixtures stay in a core's second-level cache
MAX_FLOATS = 2**26  # floats in all; if there are more, nothing is kept


class FirstLayerCache:
    """Caches the outputs of models `rows [M, D]` for blocks of examples until the rows are freed."""

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
        if len(examples) * values[0][:, 0].numel() <= MAX_FLOATS:
            self.blocks[key] = values
        return values

    def _compute(self, rows: torch.Tensor, examples: Examples, block: slice) -> list[torch.Tensor]:
        starts = range(block.start, block.stop, PART_SIZE)
        parts = (examples.inputs(slice(start, min(start + PART_SIZE, block.stop))) for start in starts)
        return [self.evaluator.first_layer(rows, x) for x in parts]
