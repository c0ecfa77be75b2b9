"""Networks as matching sees them: plain arrays of the layers of a chain, in float64.

Hidden units must be interchangeable, each with weights of its own.
A row's entries are taken in their order: weight and bias of the first linear layer, then of the next.
Legend: C clients, D entries of a row, l units of a client's layer, L units of a global layer, K classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from fedexp.core.values import Layout, Weights

ELEMENTWISE = (nn.Dropout, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus)


@dataclass(frozen=True)
class Network:
    """`weights` `[outputs, inputs]` and `biases` `[outputs]` of the linear layers, the output layer last."""

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return tuple(len(bias) for bias in self.biases[:-1])


def hidden_widths(layout: Layout) -> tuple[int, ...]:
    """Widths of a chain's hidden layers."""
    return tuple(shape[0] for shape in layout.shapes[1:-2:2])


def networks(layout: Layout, rows: torch.Tensor) -> list[Network]:
    """The networks that rows `[C, D]` hold."""
    entries = [
        piece.reshape(shape)
        for row in rows.double().cpu().numpy()
        for piece, shape in zip(np.split(row, np.cumsum(layout.sizes)[:-1]), layout.shapes, strict=True)
    ]
    count = len(layout.shapes)
    return [
        Network(tuple(entries[start : start + count : 2]), tuple(entries[start + 1 : start + count : 2]))
        for start in range(0, len(entries), count)
    ]


def as_weights(network: Network, like: Weights) -> Weights:
    """A network as a row with a layout of its own; the entries have the names of `like`, a model of the same chain."""
    entries = [entry for pair in zip(network.weights, network.biases, strict=True) for entry in pair]
    layout = Layout(like.layout.names, tuple(entry.shape for entry in entries), like.layout.trainable)
    return Weights(torch.from_numpy(np.concatenate([entry.ravel() for entry in entries])).to(like.flat), layout)


def subnetworks(weights: Weights, units: Sequence[np.ndarray]) -> torch.Tensor:
    """Rows `[C, D]` of the networks that hold, in each hidden layer, the units `[C, l]` in this order."""
    views, device = list(weights.layout.views(weights.flat).values()), weights.flat.device
    clients = len(units[0])
    inputs, outputs = views[0].shape[1], len(views[-1])
    everything = [np.broadcast_to(np.arange(width), (clients, width)) for width in (inputs, outputs)]
    chosen = [torch.tensor(index, device=device) for index in (everything[0], *units, everything[1])]
    pieces = []
    for layer, (below, above) in enumerate(pairwise(chosen)):
        pieces += [views[2 * layer][above[:, :, None], below[:, None, :]], views[2 * layer + 1][above]]
    return torch.cat([piece.flatten(1) for piece in pieces], dim=1)


def find_obstacle(network: nn.Module) -> str | None:
    """Why a network is not a chain of linear layers with activations between them; None if it is one."""
    if not isinstance(network, nn.Sequential):
        return "is no plain chain of layers"
    layers = [layer for layer in network if not isinstance(layer, nn.Flatten)]
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    for layer in layers:
        if not isinstance(layer, (nn.Linear, *ELEMENTWISE)):
            return f"has a {type(layer).__name__} layer"
    if len(linear) < 2:
        return "has no hidden layer"
    if any(layer.bias is None for layer in linear):
        return "has a linear layer without biases"
    if len({id(layer.weight) for layer in linear}) < len(linear):
        return "has a linear layer in two places"
    if any(first.out_features != second.in_features for first, second in pairwise(linear)):
        return "has a linear layer whose outputs are not the inputs of the next"
    return None
