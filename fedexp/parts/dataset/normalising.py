"""How the pixels of images are normalised, by options that all image datasets share.

`half`: to [-1, 1]. `unit`: to [0, 1]. `raw`: as the files hold them, such as 0 to 255. `standard`: by mean and
deviation of all training pixels. `per_channel`: by those of each channel. Test images may be normalised otherwise than
training images, as some published programs do, which shows in their numbers. Legend: S examples, C channels.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import torch

from fedexp.parts.dataset.contract import Data, Split

Normalise = Literal["half", "unit", "raw", "standard", "per_channel"]
Moments = tuple[tuple[float, ...], tuple[float, ...]]
Published = Mapping[str, Moments]  # means and deviations that need not be measured, as they are usually written
LEVELS, CHUNK = 256, 4096
FIXED: Published = {"half": ((0.5,), (0.5,)), "unit": ((0.0,), (1.0,))}


def image_data(
    train: Split, test: Split, class_names: tuple[str, ...], normalise: Normalise,
    published: Published | None = None, *, scale: float = 255.0,
) -> Data:  # fmt: skip
    """The dataset of images `x [S, C, H, W]` with values from 0 to `scale`, normalised as asked."""
    fixed_moments = {**FIXED, **(published or {})}
    if normalise == "raw":
        return Data(train, test, class_names, 1.0, *FIXED["unit"])
    if normalise in fixed_moments:
        return Data(train, test, class_names, scale, *fixed_moments[normalise])
    x = train.x if normalise == "per_channel" else train.x.flatten(1)[:, None]
    return Data(train, test, class_names, scale, *moments(x, scale))


def leaked_moments(normalise: Normalise, published: Published | None = None) -> str:
    """What `Dataset.leaks` says of moments that are measured on all training pixels; empty where none are."""
    measured = normalise not in {"raw", *FIXED, *(published or ())}
    return "nor are mean and deviation of all training images" if measured else ""


def with_test_normalised(data: Data, test_data: Data) -> Data:
    """`data` with test images that a model sees as those of `test_data`, the same dataset normalised otherwise."""
    (factor, offset), (test_factor, test_offset) = (
        [values.view(-1, 1, 1) for values in factor_and_offset(dataset.scale, dataset.mean, dataset.std)]
        for dataset in (data, test_data)
    )
    x = (test_data.test.x * test_factor + test_offset - offset) / factor
    return replace(data, test=replace(data.test, x=x))


def factor_and_offset(
    scale: float, mean: tuple[float, ...], std: tuple[float, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """What examples are multiplied with, and what is added then, to be `(x / scale - mean) / std`; `[1]` or `[C]`."""
    means, stds = torch.tensor(mean), torch.tensor(std)
    return 1 / (stds * scale), -means / stds


def moments(x: torch.Tensor, scale: float) -> Moments:
    """Mean and deviation of each channel of `x / scale`, `x [S, C, ...]`; a constant channel has deviation 1."""
    mean, square = _byte_moments(x, scale) if x.dtype == torch.uint8 else _float_moments(x, scale)
    std = square.sqrt()
    return tuple(mean.tolist()), tuple(torch.where(std > 0, std, 1.0).tolist())


def _byte_moments(x: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance `[C]` of bytes, from how often each level occurs: much faster than adding up all pixels."""
    rows = [torch.zeros(LEVELS, dtype=torch.int64) for _ in range(x.shape[1])]
    for piece in x.split(CHUNK):
        for channel, counts in enumerate(rows):
            counts += piece[:, channel].reshape(-1).to(torch.int32).bincount(minlength=LEVELS)
    share = torch.stack(rows).double() / (x.numel() / x.shape[1])
    level = torch.arange(LEVELS, dtype=torch.float64) / scale
    mean = share @ level
    return mean, (share * (level - mean[:, None]).square()).sum(dim=1)


def _float_moments(x: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance `[C]` of floats, in two passes."""
    channels = x.shape[1]
    total, square = torch.zeros(channels, dtype=torch.float64), torch.zeros(channels, dtype=torch.float64)
    for piece in x.split(CHUNK):
        total += _scaled_channels(piece, scale).sum(dim=1)
    mean = total / (x.numel() / channels)
    for piece in x.split(CHUNK):
        square += (_scaled_channels(piece, scale) - mean[:, None]).square().sum(dim=1)
    return mean, square / (x.numel() / channels)


def _scaled_channels(piece: torch.Tensor, scale: float) -> torch.Tensor:
    """`[S, C, ...]` as `[C, everything else]`, divided by the scale."""
    return piece.transpose(0, 1).flatten(1).double() / scale
