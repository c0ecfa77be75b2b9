"""What is done to images before a client takes a step on them: write here what is changed, and by which draws.

As it stands, every image is made brighter or darker.
"""

from typing import Annotated, ClassVar

import torch

from fedexp.parts import Augment, Fraction


def brighten(images: torch.Tensor, light: torch.Tensor) -> torch.Tensor:
    """Images `[..., B, C, H, W]` with `light [..., B]` added to every pixel; other examples likewise."""
    return images + light.view(*light.shape, *[1] * (images.dim() - light.dim()))


class OwnAugment(Augment):
    """Adds up to `strength`, or takes it away."""

    draws: ClassVar[int] = 1

    strength: Annotated[float, Fraction] = 0.2

    def batch(self, images: torch.Tensor, uniform: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
        return brighten(images, (2 * uniform[..., 0] - 1) * self.strength)
