"""Max pooling without a gradient is PyTorch's, to the bit; networks are evaluated as they are, but for rounding."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fedexp.training.layers.inference_pass import inference_pass
from fedexp.training.layers.kinds.pooling import is_2x2_pool, max_pool_2x2


def test_the_largest_of_every_four_by_hand():
    x = torch.tensor([[1.0, 2.0, 9.0], [4.0, 3.0, 9.0], [9.0, 9.0, 9.0]])
    assert max_pool_2x2(x[None, None]).tolist() == [[[[4.0]]]]


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last])
def test_pools_are_those_of_pytorch(form: torch.memory_format):
    values = torch.tensor([-torch.inf, -2.0, -1.0, 0.0, 1.0, torch.inf, torch.nan])
    x = values[torch.randint(7, (4, 3, 7, 10), generator=torch.Generator().manual_seed(1))].to(memory_format=form)
    torch.testing.assert_close(max_pool_2x2(x), F.max_pool2d(x, 2), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "layer",
    [nn.MaxPool2d(2, 1), nn.MaxPool2d(3, 2), nn.MaxPool2d(2, ceil_mode=True), nn.MaxPool2d(2, return_indices=True)],
)
def test_other_pools_are_left_to_pytorch(layer: nn.Module):
    assert is_2x2_pool(nn.MaxPool2d(2))
    assert not is_2x2_pool(layer)


def test_a_network_says_what_it_says():
    relu, x = nn.ReLU(), torch.randn(5, 3, 9, 8)
    chain = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Sequential(relu, nn.MaxPool2d(2)), nn.Conv2d(4, 2, 2), relu).eval()
    with torch.inference_mode():
        torch.testing.assert_close(inference_pass(chain)(x), chain(x))
    chain[0].register_forward_hook(lambda *_: None)
    assert inference_pass(chain) is chain
