"""Convolutions in one and two dimensions. Legend: G rows, B batch, H x W pixels, C input and O output channels."""

import torch
from torch import nn
from torch.nn import functional as F

from fedexp.training.layers.example_gradients import LayerGradients, MaterialisedGradients
from fedexp.training.layers.kind import Activations, Entries, Evaluator, LayerKind, Shape
from fedexp.training.layers.kinds.convolution.batched import build_batched_convolution
from fedexp.training.layers.kinds.convolution.spec import ConvolutionSpec
from fedexp.training.layers.layer_pass import LayerPass, ManualContext

aten = torch.ops.aten
Convolution = nn.Conv1d | nn.Conv2d


def output_shape(layer: Convolution, shape: Shape) -> Shape:
    """Returns the shape of the output of an example of this shape."""
    return layer.out_channels, *ConvolutionSpec.of(layer, shape).output_size[-len(layer.kernel_size) :]


def kernel_lines(entries: Entries, _flattened: Shape | None) -> torch.Tensor:
    """Returns the kernels `[O, P]`, one a line in the order of a patch (height, width, channel), its bias behind it."""
    weight = entries["weight"].movedim(1, -1).flatten(1)
    return torch.cat([weight, entries["bias"][:, None]], dim=1) if "bias" in entries else weight


def pads_with_zeros(layer: Convolution) -> bool:
    """Whether a convolution pads its input with zeros, by numbers."""
    return layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


class ManualConvolution(LayerPass):
    """A convolution of `[B, C, H, W]` or `[B, C, W]`."""

    def __init__(self, layer: Convolution, context: ManualContext) -> None:
        self.weight, self.bias = layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
        self.weight_grad, self.bias_grad = context.grads["weight"], context.grads.get("bias")
        assert not isinstance(layer.padding, str)
        output_padding = [0] * len(layer.kernel_size)
        self.settings = (layer.stride, layer.padding, layer.dilation, False, output_padding, layer.groups)
        self.output_mask = [context.needs_input_grad, True, self.bias is not None]
        self.bias_sizes = None if self.bias is None else [len(self.bias)]

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


def convolution_evaluator(layer: Convolution) -> Evaluator | None:
    """Returns the evaluator of a convolution with a bias and without strides, dilation and groups; None for others."""
    is_plain = {*layer.stride, *layer.dilation, layer.groups} == {1} and layer.bias is not None
    return evaluate_convolution if is_plain else None


def evaluate_convolution(layer: Convolution, entries: Entries, flow: Activations, rows: int) -> Activations:
    """Evaluates a convolution; if the inputs are not shared, with one group of channels for each row."""
    assert not isinstance(layer.padding, str)
    weight, bias = entries["weight"].flatten(0, 1), entries["bias"].flatten()
    groups = 1 if flow.form == "shared" else rows
    if isinstance(layer, nn.Conv1d):
        return Activations(F.conv1d(flow.x, weight, bias, padding=layer.padding, groups=groups), "channels")
    weight = weight.contiguous(memory_format=torch.channels_last)
    return Activations(F.conv2d(flow.x, weight, bias, padding=layer.padding, groups=groups), "channels")


def convolution_gradients(layer: Convolution, inputs: torch.Tensor, errors: torch.Tensor) -> LayerGradients:
    """Returns the gradients of a convolution, as a linear layer over all patches of the input.

    `inputs [B, C, ...]` and `errors [B, O, ...]`. They are small, and formed.
    """
    assert not isinstance(layer.padding, str)
    kernel, padding, dilation, stride = layer.kernel_size, layer.padding, layer.dilation, layer.stride
    if isinstance(layer, nn.Conv1d):
        inputs = inputs.unsqueeze(-2)
        kernel, padding, dilation, stride = (1, *kernel), (0, *padding), (1, *dilation), (1, *stride)
    patches = F.unfold(inputs, kernel, dilation, padding, stride)
    errors = errors.flatten(2)
    weight = (errors @ patches.transpose(1, 2)).flatten(1)
    return MaterialisedGradients(weight if layer.bias is None else torch.cat([weight, errors.sum(dim=2)], dim=1))


KINDS = (
    LayerKind(
        types=(nn.Conv1d, nn.Conv2d),
        manual=ManualConvolution,
        batched=build_batched_convolution,
        supports=lambda layer, shape: pads_with_zeros(layer) and len(shape) == len(layer.kernel_size) + 1,
        output_shape=output_shape,
        entry_lines=kernel_lines,
        scratch_floats=lambda layer, shape: ConvolutionSpec.of(layer, shape).scratch_floats,
        evaluator=convolution_evaluator,
        gradient_rule=lambda layer: convolution_gradients if layer.groups == 1 and pads_with_zeros(layer) else None,
        in_bfloat16=True,
    ),
)
