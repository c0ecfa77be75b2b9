"""Narrow 1x1 convolutions at a stride get their images channels first on a CPU.

For images in channels-last memory, as ours are, oneDNN's weight gradient of such a convolution writes past its
workspace if the inputs are fewer than the numbers of a vector register (oneDNN issue 6035): the process ends, or
gradients are wrong. A layer with this hook is no part of a chain, so autograd takes the network.
"""

import torch
from torch import nn

VECTOR = 16  # float32 numbers of AVX-512


def order_channels_first(network: nn.Module) -> nn.Module:
    """Returns the network, with a hook at each of its layers `nn.Conv2d` that needs its images channels first."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d) and _is_narrow_strided(layer):
            layer.register_forward_pre_hook(_copy_channels_first)
    return network


def _is_narrow_strided(layer: nn.Conv2d) -> bool:
    strided = layer.kernel_size == (1, 1) and layer.stride != (1, 1)
    return strided and layer.groups == 1 and layer.in_channels < VECTOR and layer.weight.device.type == "cpu"


def _copy_channels_first(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The images in a memory of their own; `contiguous` leaves the strides of a single channel as they are."""
    return tuple(x.clone(memory_format=torch.contiguous_format) for x in inputs)
