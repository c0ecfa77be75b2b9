"""Max pooling without gradients, which on a CPU need not store the positions of the maxima."""

from collections.abc import Callable

import torch
from torch import nn

from fedexp.training.layers.sequential import layer_chain


def is_2x2_pool(layer: nn.Module) -> bool:
    """Whether a layer is a 2 x 2 max pooling with stride 2 and no other options."""
    if type(layer) is not nn.MaxPool2d or layer.return_indices:
        return False
    return (layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode) == (2, 2, 0, 1, False)


def max_pool_2x2(x: torch.Tensor) -> torch.Tensor:
    """Max pooling of 2 x 2 pixels of `x [B, C, H, W]`, as maxima of strided views: twice as fast as PyTorch's."""
    if x.dim() != 4:  # [C, H, W] of one example, or signals that PyTorch takes for it
        return nn.functional.max_pool2d(x, 2)
    height, width = (side // 2 * 2 for side in x.shape[2:])
    tall = torch.maximum(x[:, :, 0:height:2, :width], x[:, :, 1:height:2, :width])
    return torch.maximum(tall[..., 0::2], tall[..., 1::2])


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
