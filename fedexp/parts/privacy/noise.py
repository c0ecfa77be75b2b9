"""Adds Gaussian noise to rows. Legend: C rows, D entries of a row."""

import numpy as np
import torch

from fedexp.parts import Context


def noise_std(multiplier: float, clip: float) -> float:
    """The standard deviation of the noise of one entry, multiplier * clip; 0 without a multiplier."""
    return multiplier * clip if multiplier else 0.0


def add_noise(rows: torch.Tensor, owner: np.ndarray, std: float, ctx: Context) -> torch.Tensor:
    """The rows `[C, D]` of `owner [C]` with Gaussian noise, each client's from a stream of its own."""
    noisy = rows.clone()
    for position, client in enumerate(owner.tolist()):
        noise = ctx.rng("privacy", client).standard_normal(rows.shape[1], dtype=np.float32)
        noisy[position] += std * torch.from_numpy(noise).to(noisy)
    return noisy
