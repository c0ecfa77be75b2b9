"""Examples on the device: stored as loaded, normalised batch by batch."""

import copy

import numpy as np
import torch

from fedexp.core.device_arrays import to_device
from fedexp.parts.augment.contract import Augment
from fedexp.parts.dataset.contract import Data, Split
from fedexp.parts.dataset.normalising import factor_and_offset

MAX_NORMALISED_FLOATS = 2**26  # floats of examples that are kept normalised


class Examples:
    """All examples of a split on one device. Images are stored channels-last, so that batches are, too.

    `augment` is what is done to them where they are trained on, and only there.
    """

    def __init__(self, split: Split, data: Data, device: torch.device, augment: Augment | None = None) -> None:
        self.augment = augment or Augment()
        self.images = split.x.dim() == 4
        stored = split.x.permute(0, 2, 3, 1) if self.images else split.x
        self.x = stored.contiguous().to(device)
        self.y = split.y.to(device)
        shape = (-1, *[1] * (split.x.dim() - 2))
        self.mean, self.std = (torch.tensor(values, device=device).view(shape) for values in (data.mean, data.std))
        factor, offset = factor_and_offset(data.scale, data.mean, data.std)
        self.factor, self.offset = (self._per_channel(values).to(device) for values in (factor, offset))
        tokens = split.x.dtype == torch.int64  # which the network looks up
        as_is = split.x.is_floating_point() and bool((self.factor == 1).all() and (self.offset == 0).all())
        self.is_normalised = tokens or as_is

    def subset(self, index: np.ndarray) -> "Examples":
        """Returns the examples at the positions `index [S]`, without augmentation."""
        part = copy.copy(self)
        part.augment = Augment()
        positions = self.to_device(index)
        part.x, part.y = self.x[positions], self.y[positions]
        return part

    def normalise(self) -> "Examples":
        """Returns the examples normalised in advance, or itself if they are too many to store as floats."""
        if self.is_normalised or self.x.numel() > MAX_NORMALISED_FLOATS:
            return self
        ready = copy.copy(self)
        ready.x, ready.is_normalised = self._normalise(self.x), True
        return ready

    def __len__(self) -> int:
        return len(self.y)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example as the network sees it, with the channels of images first."""
        return tuple(self.inputs(slice(0, 1)).shape[1:])

    def _per_channel(self, values: torch.Tensor) -> torch.Tensor:
        return values if len(values) == 1 or self.x.dim() != 3 else values[:, None]

    def inputs(self, index: torch.Tensor | slice) -> torch.Tensor:
        """A batch for the network, float32 `[B, *shape]`; `index [B]` holds positions, or `[R, B]` for R batches.

        Tokens are int64.
        """
        batch = self._take(index)
        if not self.is_normalised:
            batch = self._normalise(batch)
        return batch.movedim(-1, -3) if self.images else batch

    def channels_last(self, index: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """As `inputs`, but with the channels of images last, `[..., B, H, W, C]`; written to `out` if given."""
        batch = self._take(index)
        if not self.is_normalised:
            return torch.add(batch * self.factor, self.offset, out=out)
        return batch if out is None else out.copy_(batch)

    def _take(self, index: torch.Tensor | slice) -> torch.Tensor:
        if isinstance(index, slice):
            return self.x[index]
        if index.dim() > 1:
            return self._take(index.flatten()).unflatten(0, index.shape)
        return self.x.index_select(0, index)  # up to 20 times as fast as x[index]

    def _normalise(self, batch: torch.Tensor) -> torch.Tensor:
        return batch.float().mul(self.factor).add_(self.offset)  # a slice of floats is a view: never in place

    def to_device(self, index: np.ndarray) -> torch.Tensor:
        """An array (any shape), such as example numbers, as a tensor on the examples' device."""
        return to_device(index, self.x.device)
