"""What the models of a round give in their first layer, worked out once and kept while these models are asked for.

Shapley values ask for hundreds of mixtures of the same few models, on the same examples, in many small calls. Each
process keeps the blocks of examples that it happens to work on. Legend: M models, S examples, B examples of a part, F
outputs of the layer.
"""

import weakref
from collections.abc import Callable

import torch

from fedexp.scoring.side_by_side import SideBySide
from fedexp.training.examples import Examples

PART = 100  # examples of one pass: what 32 mixtures of 128 outputs give for them stays in a core's second-level cache
KEPT = 2**26  # floats in all; of more nothing is kept


class FirstLayer:
    """The outputs of `rows [M, D]` for blocks of examples; forgotten with the rows."""

    def __init__(self, way: SideBySide) -> None:
        self.way = way
        self.rows: Callable[[], torch.Tensor | None] = lambda: None
        self.blocks: dict[tuple[Examples, int, int], list[torch.Tensor]] = {}

    def outputs(self, rows: torch.Tensor, examples: Examples, block: slice) -> list[torch.Tensor]:
        """`[M, B, F]` for each part of the block, in order."""
        if self.rows() is not rows:
            self.blocks.clear()
            self.rows = weakref.ref(rows, lambda _: self.blocks.clear())
        place = (examples, block.start, block.stop)
        found = self.blocks.get(place) or self._worked_out(rows, examples, block)
        if len(examples) * found[0][:, 0].numel() <= KEPT:
            self.blocks[place] = found
        return found

    def _worked_out(self, rows: torch.Tensor, examples: Examples, block: slice) -> list[torch.Tensor]:
        starts = range(block.start, block.stop, PART)
        parts = (examples.inputs(slice(start, min(start + PART, block.stop))) for start in starts)
        return [self.way.first_layer(rows, x) for x in parts]
