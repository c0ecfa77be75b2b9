"""The first values of a network, drawn from a named stream."""

import math

import numpy as np
import torch
from torch import nn


def initialise(network: nn.Module, rng: np.random.Generator) -> None:
    """Draws every weight and bias from U(-1/sqrt(fan_in), 1/sqrt(fan_in)), PyTorch's default law, from the stream."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            for entry in (layer.weight, layer.bias):
                if entry is not None:
                    draw = rng.uniform(-bound, bound, tuple(entry.shape)).astype(np.float32)
                    entry.data.copy_(torch.from_numpy(draw))
