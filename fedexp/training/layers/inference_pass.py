"""Forward passes without gradients, in eval mode: the network's numbers but for rounding, with less work."""

from collections.abc import Callable
from itertools import zip_longest

import torch
from torch import nn

from fedexp.training.layers.registry import kind_of, least_work
from fedexp.training.layers.sequential import layer_chain


def inference_pass(network: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns the network's forward function, of `[B, *shape]`; layers of a chain by what their kinds have for it."""
    chain = layer_chain(network)
    if chain is None:
        return network
    layers = [layer for _, layer in least_work(chain)]
    steps = [_inference(layer, behind) for layer, behind in zip_longest(layers, layers[1:])]

    def forward(x: torch.Tensor) -> torch.Tensor:
        for step in steps:
            x = step(x)
        return x

    return forward


def _inference(layer: nn.Module, behind: nn.Module | None) -> Callable[[torch.Tensor], torch.Tensor]:
    kind = kind_of(layer)
    return layer if kind is None else kind.inference(layer, behind) or layer
