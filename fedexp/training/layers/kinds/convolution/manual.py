"""Convolutions of one row, alone and together with the max pooling behind them.

Legend: B batch, H x W pixels, C channels.
"""

from dataclasses import replace

import torch
from torch import nn

from fedexp.training.layers.kind import ManualBuilder, PlannedLayer
from fedexp.training.layers.kinds.convolution.pixel_pairs import InputGradPairs, PixelPairs, channels_last, is_narrow
from fedexp.training.layers.kinds.convolution.spec import ConvolutionSpec
from fedexp.training.layers.kinds.pooling import ManualPool, is_2x2_pool
from fedexp.training.layers.layer_pass import LayerPass, ManualContext

aten = torch.ops.aten
Convolution = nn.Conv1d | nn.Conv2d


class ManualConvolution(LayerPass):
    """A convolution of `[B, C, H, W]` or `[B, C, W]`."""

    def __init__(self, layer: Convolution, context: ManualContext) -> None:
        self.weight, self.bias = layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
        self.weight_grad, self.bias_grad = context.grads["weight"], context.grads.get("bias")
        assert not isinstance(layer.padding, str)
        output_padding = [0] * len(layer.kernel_size)
        self.settings = (layer.stride, layer.padding, layer.dilation, False, output_padding, layer.groups)
        self.output_mask = [context.needs_input_grad, True, self.bias_grad is not None]
        self.bias_sizes = None if self.bias_grad is None else [len(self.bias_grad)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        return torch.convolution(x, self.weight, self.bias, *self.settings)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad_input, weight, bias = aten.convolution_backward.default(
            grad, self.x, self.weight, self.bias_sizes, *self.settings, self.output_mask
        )
        self.weight_grad.copy_(weight)
        if self.bias_grad is not None:
            self.bias_grad.copy_(bias)
        return grad if grad_input is None else grad_input


class NarrowConvolution(LayerPass):
    """A convolution with few outputs of `[B, C, H, W]`, by pairs of pixels; an odd last column is left out."""

    def __init__(self, layer: nn.Conv2d, spec: ConvolutionSpec, context: ManualContext) -> None:
        weight, bias = layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
        self.pairs, self.padding, self.weight_grad = PixelPairs(weight, bias), spec.padding, context.grads["weight"]
        self.needs_input_grad = context.needs_input_grad
        can_turn = is_narrow(replace(spec, outputs=spec.channels)) and min(spec.grad_padding) >= 0
        self.turned = InputGradPairs(weight, spec) if self.needs_input_grad and can_turn else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = channels_last(x)
        return self.pairs.convolve(self.x, self.padding)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        self.weight_grad.copy_(self.pairs.weight_grad(self.x, grad, self.padding))
        if not self.needs_input_grad:
            return grad
        return self.pairs.input_grad(self.x, grad, self.padding) if self.turned is None else self.turned(grad)


class PooledConvolution(LayerPass):
    """A convolution and the max pooling behind it.

    The gradient of the biases is summed in front of the pooling, where there is least to sum: each of its numbers goes
    back to one pixel.
    """

    def __init__(self, layer: Convolution, pool: PlannedLayer, spec: ConvolutionSpec, context: ManualContext) -> None:
        self.bias_grad = context.grads.get("bias")
        context = replace(context, grads={"weight": context.grads["weight"]})
        self.convolution = (
            NarrowConvolution(layer, spec, context)
            if isinstance(layer, nn.Conv2d) and is_narrow(spec) and is_2x2_pool(pool.layer)
            else ManualConvolution(layer, context)
        )
        self.pool = ManualPool(pool.layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool.forward(self.convolution.forward(x))

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        if self.bias_grad is not None:
            torch.sum(grad, (0, *range(2, grad.dim())), out=self.bias_grad)
        return self.convolution.backward(self.pool.backward(grad))


def build_with_pool(planned: PlannedLayer, behind: PlannedLayer) -> ManualBuilder | None:
    """Returns what builds the pass of a convolution and the layer behind it; None if that is no max pooling."""
    if not isinstance(behind.layer, nn.MaxPool1d | nn.MaxPool2d):
        return None
    spec = ConvolutionSpec.of(planned.layer, planned.shape)
    return lambda layer, context: PooledConvolution(layer, behind, spec, context)
