"""Narrow convolutions of one row, computed for two neighbouring pixels at once.

Vector units multiply 16 numbers; a convolution with 8 outputs leaves half of them idle. In channels-last memory, images
`[B, 2 O, H, W / 2]` are the images `[B, O, H, W]`: so a convolution with 2 O outputs at stride (1, 2), whose kernel is
one pixel wider and holds the weights twice, the second time a pixel further right, computes the same image. The added
weights are zeros, so outputs differ in the last bit at most (where an input is infinite, its neighbours get NaN).
Gradients are sums in another order.

Legend: B batch, H x W pixels, C input and O output channels.
"""

import torch

from fedexp.training.layers.kinds.convolution.spec import ConvolutionSpec

aten = torch.ops.aten
MAX_OUTPUTS = 8  # wider ones gain nothing
STRIDE = (1, 2)


def is_narrow(spec: ConvolutionSpec) -> bool:
    """Whether a convolution has so few outputs that pairs of pixels are faster, and no unusual settings."""
    return spec.outputs <= MAX_OUTPUTS and (spec.stride, spec.dilation, spec.groups) == ((1, 1), (1, 1), 1)


class PixelPairs:
    """The weights `[O, C, kernel height, kernel width]` of a convolution, as those of pairs of pixels."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        """`weight` and `bias [O]` may change between calls, but must stay where they are."""
        outputs, channels, height, width = weight.shape
        self.weight, self.bias = weight, bias
        self.pair_weight = weight.new_zeros((2 * outputs, channels, height, width + 1))
        self.both_weights = _both_copies(self.pair_weight)
        self.both_biases = None if bias is None else bias.new_zeros((2, outputs))

    def convolve(self, x: torch.Tensor, padding: tuple[int, ...]) -> torch.Tensor:
        """Convolves `x [B, C, H, W]`: `[B, O, H, W]`, channels last, without the last column if W is odd."""
        self.both_weights.copy_(self.weight)
        bias = None
        if self.both_biases is not None:
            assert self.bias is not None
            bias = self.both_biases.copy_(self.bias).flatten()
        y = torch.convolution(channels_last(x), self.pair_weight, bias, STRIDE, padding, (1, 1), False, (0, 0), 1)
        batch, channels, height, width = y.shape
        return channels_last(y).as_strided(
            (batch, channels // 2, height, 2 * width), _channels_last_stride(channels // 2, height, 2 * width)
        )

    def weight_grad(self, x: torch.Tensor, grad: torch.Tensor, padding: tuple[int, ...]) -> torch.Tensor:
        """Returns the gradient `[O, C, height, width]` of the weights, given that at what `convolve` returned."""
        pairs = self._differentiate(x, grad, padding, [False, True, False])[1]
        return _both_copies(pairs.contiguous()).sum(0)

    def input_grad(self, x: torch.Tensor, grad: torch.Tensor, padding: tuple[int, ...]) -> torch.Tensor:
        """Returns the gradient at `x`, `[B, C, H, W]`, as `weight_grad` that of the weights."""
        return self._differentiate(x, grad, padding, [True, False, False])[0]

    def _differentiate(
        self, x: torch.Tensor, grad: torch.Tensor, padding: tuple[int, ...], mask: list[bool]
    ) -> list[torch.Tensor]:
        batch, outputs, height, width = grad.shape
        pairs = channels_last(grad).as_strided(
            (batch, 2 * outputs, height, width // 2), _channels_last_stride(2 * outputs, height, width // 2)
        )
        settings = STRIDE, padding, (1, 1), False, (0, 0), 1
        return aten.convolution_backward.default(pairs, channels_last(x), self.pair_weight, None, *settings, mask)


class InputGradPairs:
    """The input gradient of a narrow convolution with few inputs: a convolution by its turned kernels."""

    def __init__(self, weight: torch.Tensor, spec: ConvolutionSpec) -> None:
        """`weight [O, C, height, width]` may change between calls, but must stay where it is."""
        self.width = spec.input_size[1]
        self.weight, self.turned = weight, weight.new_zeros(weight.transpose(0, 1).shape)
        self.pairs = PixelPairs(self.turned, None)
        vertical, horizontal = spec.grad_padding
        columns = spec.output_size[1] // 2 * 2 + 2 * horizontal - spec.kernel[1] + 1
        self.border = next(border for border in range(3) if (columns + 2 * border) // 2 * 2 >= self.width + border)
        self.padding = vertical, horizontal + self.border

    def __call__(self, grad: torch.Tensor) -> torch.Tensor:
        """Returns the gradient at the input `[B, C, H, W]`, given that at the output, an odd last column left out."""
        self.turned.copy_(self.weight.flip(2, 3).transpose(0, 1))
        return self.pairs.convolve(grad, self.padding)[..., self.border : self.border + self.width]


def _both_copies(pair_weight: torch.Tensor) -> torch.Tensor:
    """A view `[2, O, C, height, width]` of both copies of the weights in `[2 O, C, height, width + 1]`, contiguous."""
    (outputs, channels, height, width), stride = pair_weight.shape, pair_weight.stride()
    shape = 2, outputs // 2, channels, height, width - 1
    return pair_weight.as_strided(shape, (outputs // 2 * stride[0] + 1, *stride))


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """Images `[B, C, H, W]` in channels-last memory, and with its strides also if there is but one channel."""
    x = x.contiguous(memory_format=torch.channels_last)
    return x.as_strided(x.shape, _channels_last_stride(*x.shape[1:]))


def _channels_last_stride(channels: int, height: int, width: int) -> tuple[int, int, int, int]:
    return height * width * channels, 1, width * channels, channels
