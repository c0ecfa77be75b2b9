"""The inputs of a captured graph's steps as batched passes want them: channels last, padded.

They are gathered for all steps of the graph at once where memory allows and nothing changes them step by step.
Legend: k steps of a graph, R rows, B batch, H x W pixels, C channels.
"""

import math
from collections.abc import Iterator

import torch

from fedexp.training.client.augmentation import BatchAugmenter
from fedexp.training.client.examples import Examples
from fedexp.training.layers.layer_pass import LayerPass
from fedexp.training.stacked.step_schedule import StepBatch

MEMORY_DIVISOR = 8  # of the memory that rows may take: what the inputs of several steps may take of it


class GraphInputs:
    """Gathers the inputs of a bucket."""

    def __init__(
        self,
        examples: Examples,
        augmenter: BatchAugmenter,
        first_layer: LayerPass,
        memory_mb: float,
        sizes: tuple[int, int, int],
    ) -> None:
        """Allocates the buffers for `sizes`: so many steps, rows and examples."""
        self.examples, self.augmenter, self.first_layer = examples, augmenter, first_layer
        floats = math.prod(sizes) * examples.x[0].numel()
        self.gathers_all_steps = not examples.augment.draws and floats <= memory_mb * 1e6 / 4 / MEMORY_DIVISOR
        self.input_buffers: torch.Tensor | None = None
        if self.gathers_all_steps and examples.images:
            self.input_buffers = first_layer.input_buffers(sizes[0])

    def of(self, steps: StepBatch) -> Iterator[torch.Tensor]:
        """Yields the inputs of every step, `[R, B, ...]`."""
        all_inputs = self.examples.channels_last(steps.examples, self.input_buffers) if self.gathers_all_steps else None
        for step in range(len(steps.examples)):
            if self.input_buffers is not None:
                yield self.first_layer.select_step(step)
            elif all_inputs is not None:
                yield self._as_images(all_inputs[step])
            else:
                yield self._step_inputs(steps.at(step))

    def _step_inputs(self, step: StepBatch) -> torch.Tensor:
        if self.examples.augment.draws:
            augmented_inputs = self.augmenter(self.examples.inputs(step.examples), step.steps_before)
            return augmented_inputs.movedim(-3, -1) if self.examples.images else self._as_images(augmented_inputs)
        return self._as_images(self.examples.channels_last(step.examples))

    def _as_images(self, x: torch.Tensor) -> torch.Tensor:
        """Views signals `[R, B, C, W]` as images of height 1, `[R, B, 1, W, C]`; others unchanged."""
        return x.movedim(-1, -2).unsqueeze(2) if self.examples.x.dim() == 3 else x
