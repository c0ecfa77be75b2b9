"""Pad, crop at random, flip at random: the usual augmentation of small images.

He, Zhang, Ren, Sun, "Deep residual learning for image recognition", CVPR 2016, arXiv:1512.03385, section 4.2: 4 pixels
are padded on each side, a crop of the old size is taken, and half of the crops are mirrored. `padding=reflect` repeats
the image beyond its edge, as NIID-Bench does, instead of black. Every image has its own crop.
Legend: N images, C channels, H height, W width.
"""

from typing import Annotated, ClassVar, Literal

import torch

from fedexp.parts import Augment, ConfigError, Facts, Fraction, Range

Padding = Literal["zeros", "reflect"]


def crop_and_flip(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor, flip: torch.Tensor, black: torch.Tensor | None
) -> torch.Tensor:
    """Images `[N, H, W, C]`, each moved by `down` and `right [N]` pixels, then mirrored where `flip [N]`.

    Beyond its edge an image is `black [C or 1]`, or its own reflection where that is None.
    """
    count, height, width, channels = images.shape
    columns = torch.arange(width, device=images.device)
    columns = torch.where(flip[:, None], width - 1 - columns, columns) - right[:, None]
    rows = torch.arange(height, device=images.device) - down[:, None]
    first = torch.arange(count, device=images.device)[:, None, None] * (height * width)
    source_index = first + _reflect(rows, height)[:, :, None] * width + _reflect(columns, width)[:, None, :]
    crops = images.reshape(-1, channels).index_select(0, source_index.view(-1)).view(images.shape)
    if black is None:
        return crops
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None, :]
    return torch.where(inside[..., None], crops, black.to(crops.dtype))


def _reflect(index: torch.Tensor, size: int) -> torch.Tensor:
    """Indices (any shape) beyond an edge reflected back inside; the edge itself is not repeated."""
    index = index.abs()
    return torch.where(index < size, index, 2 * (size - 1) - index)


class CropFlip(Augment):
    """`flip` is the share of images that are mirrored."""

    draws: ClassVar[int] = 3

    pad: Annotated[int, Range(0, 64)] = 4
    padding: Padding = "zeros"
    flip: Annotated[float, Fraction] = 0.5

    def refuse(self, facts: Facts) -> None:
        if len(facts.shape) != 3 or facts.vocabulary:
            raise ConfigError(
                f"augment=crop_flip needs images of the shape (channels, height, width), got {facts.shape}; use "
                "augment=none"
            )
        if self.pad >= min(facts.shape[1:]):
            raise ConfigError(
                f"augment.pad must be less than the images' height and width, {min(facts.shape[1:])}, got {self.pad}"
            )

    def batch(self, images: torch.Tensor, uniform: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
        channels_last = images.movedim(-3, -1)
        drawn = uniform.flatten(0, -2)
        shift = (drawn[:, :2] * (2 * self.pad + 1)).long().clamp(max=2 * self.pad) - self.pad
        black = (-mean / std).reshape(-1) if self.padding == "zeros" else None
        crops = crop_and_flip(channels_last.flatten(0, -4), shift[:, 0], shift[:, 1], drawn[:, 2] < self.flip, black)
        return crops.view(channels_last.shape).movedim(-1, -3)
