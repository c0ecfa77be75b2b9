"""Convolutions by pairs of pixels are convolutions: outputs, gradients, odd sides, every padding."""

from itertools import product

import pytest
import torch
from torch import nn

from fedexp.training.layers.kinds.convolution.manual import NarrowConvolution
from fedexp.training.layers.kinds.convolution.pixel_pairs import PixelPairs, is_narrow
from fedexp.training.layers.kinds.convolution.spec import ConvolutionSpec
from fedexp.training.layers.layer_pass import ManualContext


def test_two_pixels_by_hand():
    """The kernel (1, 10) over 1, 2, 3, 4 gives 21, 32, 43; of three columns the last is left out."""
    pairs = PixelPairs(torch.tensor([[[[1.0, 10.0]]]]), torch.tensor([0.5]))
    assert pairs.pair_weight.flatten(1).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert pairs.convolve(torch.tensor([[[[1.0, 2, 3, 4]]]]), (0, 0)).tolist() == [[[[21.5, 32.5]]]]
    assert pairs.pair_weight.flatten(1).tolist() == [[1, 10, 0], [0, 1, 10]]


@pytest.mark.parametrize(("kernel", "channels"), list(product((1, 2, 3, 4), (1, 3, 9))))
@pytest.mark.parametrize("sides", [(6, 6), (7, 7), (6, 7), (7, 6)])
def test_outputs_and_gradients_are_those_of_autograd(kernel: int, channels: int, sides: tuple[int, int]):
    for padding in range(kernel):
        layer = nn.Conv2d(channels, 3, kernel, padding=padding, bias=padding % 2 == 0).double()
        x = torch.randn(2, channels, *sides, dtype=torch.float64, requires_grad=True)
        theirs = layer(x)
        theirs = theirs[..., : theirs.shape[3] // 2 * 2]
        grad = torch.randn_like(theirs)
        weight_grad, input_grad = torch.autograd.grad(theirs, (layer.weight, x), grad)
        context = ManualContext({"weight": torch.zeros_like(layer.weight)}, True, False, None)
        narrow = NarrowConvolution(layer, ConvolutionSpec.of(layer, tuple(x.shape[1:])), context)
        with torch.no_grad():
            torch.testing.assert_close(narrow.forward(x), theirs)
            torch.testing.assert_close(narrow.backward(grad), input_grad)
        torch.testing.assert_close(context.grads["weight"], weight_grad)


@pytest.mark.parametrize(
    "layer", [nn.Conv2d(2, 9, 3), nn.Conv2d(2, 4, 3, 2), nn.Conv2d(2, 4, 3, groups=2), nn.Conv2d(2, 4, 3, dilation=2)]
)
def test_wide_and_unusual_convolutions_are_not_narrow(layer: nn.Conv2d):
    assert is_narrow(ConvolutionSpec.of(nn.Conv2d(2, 8, 3), (2, 8, 8)))
    assert not is_narrow(ConvolutionSpec.of(layer, (2, 8, 8)))
