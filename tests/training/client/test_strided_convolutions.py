import pytest
import torch
from torch import nn

from fedexp.training.client.strided_convolutions import order_channels_first


@pytest.mark.parametrize(
    ("inputs", "kernel", "stride", "first"), [(4, 1, 2, True), (1, 1, 2, True), (16, 1, 2, False), (4, 3, 2, False)]
)
def test_only_narrow_1x1_convolutions_at_a_stride_get_channels_first(
    inputs: int, kernel: int, stride: int, first: bool
):
    seen: list[torch.Tensor] = []
    network = nn.Conv2d(inputs, 8, kernel, stride)
    order_channels_first(network).register_forward_pre_hook(lambda layer, args: seen.append(args[0]))
    x = torch.randn(4, 8, 8, inputs).movedim(-1, -3)  # as batches are
    network(x)
    strides = (64 * inputs, 64, 8, 1) if first else (64 * inputs, 1, 8 * inputs, inputs)
    assert seen[0].stride() == strides
    assert torch.equal(seen[0], x)


@pytest.mark.parametrize("inputs", [1, 3])
def test_their_weight_gradient_is_right_and_the_memory_behind_it_is_left_alone(inputs: int):
    """Without the hook the process ends within a few rounds of this on a CPU with AVX2."""
    network, reference = nn.Conv2d(inputs, 16, 1, 2), nn.Conv2d(inputs, 16, 1, 2).double()
    order_channels_first(network)
    reference.load_state_dict(network.state_dict())
    for _ in range(50):
        x = torch.randn(4, 16, 16, inputs).movedim(-1, -3)
        (grad,) = torch.autograd.grad(network(x).square().mean(), network.weight)
        (expected,) = torch.autograd.grad(reference(x.double().contiguous()).square().mean(), reference.weight)
        torch.testing.assert_close(grad.double(), expected, rtol=1e-5, atol=1e-7)
