"""The inputs of a captured graph's steps as batched passes want them: channels last, padded.

They are gathered for all steps of the graph at once where memory allows and nothing changes them step by step.
Legend: k steps of a graph, R rows, B batch, H x W pixels, C channels.
"""

from collections.abc import Iterator

import torch

from fedexp.training.agenda import Turns
from fedexp.training.augmenting import Augmenting
from fedexp.training.examples import Examples
from fedexp.training.stacked_pass import StackedPass

PART = 8  # of the memory that rows may take: what the inputs of several steps may take of it


class StackedInputs:
    """Gathers the inputs of a bucket."""

    def __init__(self, examples: Examples, augmenting: Augmenting, passes: StackedPass, memory_mb: float) -> None:
        self.examples, self.augmenting, self.passes = examples, augmenting, passes
        self.floats = memory_mb * 1e6 / 4 / PART
        self.rooms: torch.Tensor | None = None
        self.together = False

    def prepare(self, steps: int, rows: int, batch: int) -> None:
        """Allocates the buffers for so many steps, rows and examples."""
        floats = steps * rows * batch * self.examples.x[0].numel()
        self.together = not self.examples.augment.draws and floats <= self.floats
        if self.passes.begins is not None and self.together and self.examples.images:
            self.rooms = self.passes.begins.rooms(steps)

    def of(self, turns: Turns) -> Iterator[torch.Tensor]:
        """Yields the inputs of every step, `[R, B, ...]`."""
        whole = self.examples.as_they_lie(turns.examples, self.rooms) if self.together else None
        for step in range(len(turns.examples)):
            if self.rooms is not None and self.passes.begins is not None:
                room = self.passes.begins.turn(step)
                assert room is not None
                yield room
            elif whole is not None:
                yield self._lying(whole[step])
            else:
                yield self._one(turns.at(step))

    def _one(self, turn: Turns) -> torch.Tensor:
        if self.examples.augment.draws:
            changed = self.augmenting(self.examples.inputs(turn.examples), turn.before)
            return changed.movedim(-3, -1) if self.examples.images else self._lying(changed)
        return self._lying(self.examples.as_they_lie(turn.examples))

    def _lying(self, x: torch.Tensor) -> torch.Tensor:
        """Views signals `[R, B, C, W]` as images of height 1, `[R, B, 1, W, C]`; others unchanged."""
        return x.movedim(-1, -2).unsqueeze(2) if self.examples.x.dim() == 3 else x
