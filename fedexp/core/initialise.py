"""The first values of a network, drawn from a named stream.

Legend: I numbers that a unit sees (of a convolution: all of its patch), O units, times the places of the patch.
"""

import math
from typing import Literal

import numpy as np
import torch
from torch import nn

Law = Literal["default", "glorot_uniform", "he_normal"]
INITIALISED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.LSTM, nn.Embedding)


def initialise(network: nn.Module, rng: np.random.Generator, law: Law = "default", *, zero_last: bool = False) -> None:
    """Draws every weight and bias from the stream, layer by layer; with `zero_last` those of the last layer become 0.

    `default` is PyTorch's law: all entries from U(-1/sqrt(I), 1/sqrt(I)), for an LSTM of H units with H in place of I.
    `glorot_uniform` (Glorot and Bengio 2010) draws weights from U(-b, b), b = sqrt(6 / (I + O)); `he_normal` (He et al.
    2015, arXiv 1502.01852) from N(0, 2 / I), not cut off as in Keras. Under both, biases are zero, as in Keras.
    Embeddings are N(0, 1), as in PyTorch. Layers of normalisation stay as they are.
    """
    layers = [layer for layer in network.modules() if isinstance(layer, INITIALISED)]
    for layer in layers:
        for entry in layer.parameters(recurse=False):
            values = _draw_entry(layer, tuple(entry.shape), rng, law)
            entry.data.copy_(torch.from_numpy(values.astype(np.float32)))
    for entry in layers[-1].parameters() if zero_last else ():
        entry.data.zero_()


def _draw_entry(layer: nn.Module, shape: tuple[int, ...], rng: np.random.Generator, law: Law) -> np.ndarray:
    """Draws the initial values of one parameter tensor."""
    if isinstance(layer, nn.Embedding):
        return rng.standard_normal(shape)
    if law == "default":
        fan_in = layer.hidden_size if isinstance(layer, nn.LSTM) else layer.weight[0].numel()  # type: ignore[index]
        return rng.uniform(-1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in), shape)
    if len(shape) == 1:
        return np.zeros(shape)
    fan_in, fan_out = math.prod(shape[1:]), shape[0] * math.prod(shape[2:])
    if law == "he_normal":
        return rng.normal(0, math.sqrt(2 / fan_in), shape)
    bound = math.sqrt(6 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, shape)
