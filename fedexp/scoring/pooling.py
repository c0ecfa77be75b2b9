"""Max pooling without gradients, which on a CPU need not store the positions of the maxima."""

from collections.abc import Callable

import torch
from torch import nn

from fedexp.training.layers.kinds.pooling import is_2x2_pool, max_pool_2x2
from fedexp.training.layers.sequential import layer_chain


def with_fast_pooling(network: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    """The network's forward function, of `[B, *shape]`; 2 x 2 max pools of a chain go to `max_pool_2x2`."""
    chain = layer_chain(network)
    if chain is None:
        return network
    layers = [max_pool_2x2 if is_2x2_pool(layer) else layer for _, layer in chain]

    def forward(x: torch.Tensor) -> torch.Tensor:
        for layer in layers:
            x = layer(x)
        return x

    return forward
