"""The contract of augmentation: what is done to a batch of images before a client takes a step on it.

It is done in training alone: evaluation, exact losses and public data see the images as they are. What is drawn is a
function of the run's seed, the client, the round, the step and the example's place in the batch, so it is the same in
both engines, on any number of workers and after a resume. Legend: R rows that train together, B batch, C channels.
"""

from typing import ClassVar

import torch

from fedexp.core.part import Part
from fedexp.parts.dataset.contract import Facts


class Augment(Part):
    """What is done to the images of a batch. The base leaves them as they are."""

    draws: ClassVar[int] = 0  # numbers drawn for each example; 0: images stay as they are
    one_by_one: ClassVar[bool] = False  # it takes one example after another, so clients cannot be stacked

    def refuse(self, facts: Facts) -> None:
        """Raises ConfigError, before examples are loaded, if this cannot be done to examples of this kind."""

    def batch(self, images: torch.Tensor, uniform: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
        """The augmented images, in the shape `[..., B, C, H, W]` of `images`, which are not written to.

        Images are normalised: `(pixel - mean) / std`, with `mean` and `std [C or 1, 1, 1]` and pixels that usually go
        from 0 to 1. `uniform [..., B, draws]` holds numbers in [0, 1). Other examples come likewise if none is refused.
        """
        return images
