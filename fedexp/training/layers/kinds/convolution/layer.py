"""Convolutions in one and two dimensions. Legend: G rows, B batch, H x W pixels, C input and O output channels."""

import torch
from torch import nn
from torch.nn import functional as F

from fedexp.training.layers.example_gradients import LayerGradients, MaterialisedGradients
from fedexp.training.layers.kind import Activations, Entries, Evaluator, Inference, LayerKind, Shape, with_bias
from fedexp.training.layers.kinds.convolution.batched import build_batched_convolution
from fedexp.training.layers.kinds.convolution.manual import Convolution, ManualConvolution, build_with_pool
from fedexp.training.layers.kinds.convolution.pixel_pairs import PixelPairs, is_narrow
from fedexp.training.layers.kinds.convolution.spec import ConvolutionSpec
from fedexp.training.layers.kinds.pooling import is_2x2_pool


def output_shape(layer: Convolution, shape: Shape) -> Shape:
    """Returns the shape of the output of an example of this shape."""
    return layer.out_channels, *ConvolutionSpec.of(layer, shape).output_size[-len(layer.kernel_size) :]


def kernel_lines(entries: Entries, _flattened: Shape | None) -> torch.Tensor:
    """Returns the kernels `[O, P]`, one a line in the order of a patch (height, width, channel), its bias behind it."""
    return with_bias(entries["weight"].movedim(1, -1).flatten(1), entries)


def pads_with_zeros(layer: Convolution) -> bool:
    """Whether a convolution pads its input with zeros, by numbers."""
    return layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


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


def convolution_inference(layer: Convolution, behind: nn.Module | None) -> Inference | None:
    """Returns what convolves `x [B, C, H, W]` by pairs of pixels, where a narrow convolution is pooled; None else."""
    if not (isinstance(layer, nn.Conv2d) and behind is not None and is_2x2_pool(behind) and pads_with_zeros(layer)):
        return None
    if not is_narrow(ConvolutionSpec.of(layer, (layer.in_channels, 1, 1))):
        return None
    assert not isinstance(layer.padding, str)
    padding = layer.padding

    def convolve(x: torch.Tensor) -> torch.Tensor:
        if x.device.type != "cpu" or x.dim() != 4:
            return layer(x)
        return PixelPairs(layer.weight, layer.bias).convolve(x, padding)

    return convolve


def convolution_gradients(layer: Convolution, inputs: torch.Tensor, errors: torch.Tensor) -> LayerGradients:
    """Returns the gradients of a convolution, as a linear layer over all patches of the input.

    `inputs [B, C, ...]` and `errors [B, O, ...]`. They are small, and formed.
    """
    spec = ConvolutionSpec.of(layer, tuple(inputs.shape[1:]))
    images = inputs.unsqueeze(-2) if isinstance(layer, nn.Conv1d) else inputs
    patches = F.unfold(images, spec.kernel, spec.dilation, spec.padding, spec.stride)
    errors = errors.flatten(2)
    weight = (errors @ patches.transpose(1, 2)).flatten(1)
    return MaterialisedGradients(weight if layer.bias is None else torch.cat([weight, errors.sum(dim=2)], dim=1))


KINDS = (
    LayerKind(
        types=(nn.Conv1d, nn.Conv2d),
        manual=ManualConvolution,
        manual_with_next=build_with_pool,
        batched=build_batched_convolution,
        supports=lambda layer, shape: pads_with_zeros(layer) and len(shape) == len(layer.kernel_size) + 1,
        output_shape=output_shape,
        entry_lines=kernel_lines,
        scratch_floats=lambda layer, shape: ConvolutionSpec.of(layer, shape).scratch_floats,
        evaluator=convolution_evaluator,
        inference=convolution_inference,
        gradient_rule=lambda layer: convolution_gradients if layer.groups == 1 and pads_with_zeros(layer) else None,
        in_bfloat16=True,
    ),
)
