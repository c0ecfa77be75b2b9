"""Layers that models share: norms that skip padding, dropout that follows its generator."""

import pytest
import torch
from torch.func import functional_call, grad
from torch.nn import functional as F

from fedexp.parts.layers import LSTM, BatchNorm, Residual

MNIST, CIFAR, HAR, TABLE = (1, 28, 28), (3, 32, 32), (6, 128), (561,)


def masked_norm() -> BatchNorm:
    layer = BatchNorm(3)
    layer.weight.data = torch.tensor([1.0, 2.0, -0.5])
    layer.bias.data = torch.tensor([0.0, 1.0, 3.0])
    return layer


def test_masked_batch_norm_is_pytorchs_on_the_unmasked_examples():
    x = torch.randn(6, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    keep = torch.tensor([True, False, True, True, False, True])
    layer, mean, var = masked_norm(), torch.zeros(3), torch.ones(3)
    padded = x.clone().requires_grad_()
    layer.mask = keep
    out = layer(padded)
    plain = x[keep].clone().requires_grad_()
    expected = F.batch_norm(plain, mean, var, layer.weight, layer.bias, training=True)
    torch.testing.assert_close(out[keep], expected)
    assert layer.updated is not None
    torch.testing.assert_close(layer.updated, (mean, var))
    weight = torch.randn(out[keep].shape)
    (out[keep] * weight).sum().backward()
    (expected * weight).sum().backward()
    assert padded.grad is not None
    torch.testing.assert_close(padded.grad[keep], plain.grad, atol=1e-5, rtol=1e-4)
    assert not padded.grad[~keep].any()


def test_examples_that_are_not_there_move_no_statistics_whatever_they_are():
    layer = masked_norm()
    layer.mask = torch.zeros(2, dtype=torch.bool)
    layer(torch.full((2, 3, 4, 5), torch.inf))
    assert layer.updated is not None
    assert torch.equal(torch.stack(layer.updated), torch.stack([torch.zeros(3), torch.ones(3)]))


def test_a_single_value_a_channel_is_its_own_mean_alone_and_padded():
    """PyTorch refuses it; its variance is 0, so what comes out is the bias, and 0.9 of the old variance stays."""
    alone, padded, x = masked_norm(), masked_norm(), torch.tensor([2.0, 4.0, 6.0])
    out = alone(x.view(1, 3, 1, 1))
    padded.mask = torch.tensor([True, False])
    assert torch.equal(out[0], padded(torch.stack([x, -x]).view(2, 3, 1, 1))[0])
    assert out.flatten().tolist() == [0.0, 1.0, 3.0]
    assert alone.running_mean is not None
    assert alone.running_var is not None
    assert padded.updated is not None
    torch.testing.assert_close((alone.running_mean, alone.running_var), padded.updated)
    torch.testing.assert_close(alone.running_mean, x / 10)
    torch.testing.assert_close(alone.running_var, torch.full((3,), 0.9))


def test_another_momentum_and_epsilon_are_kept_under_a_mask():
    layer, plain = BatchNorm(2, 0.1, 0.5), torch.nn.BatchNorm2d(2, 0.1, 0.5)
    x, layer.mask = torch.randn(3, 2, 4, 4), torch.ones(3, dtype=torch.bool)
    torch.testing.assert_close(layer(x), plain(x))
    assert layer.updated is not None
    torch.testing.assert_close(layer.updated, (plain.running_mean, plain.running_var))


def test_the_steps_of_an_lstm_are_pytorchs_with_its_names_values_and_gradients():
    ours, plain = LSTM(3, 4, 2).double(), torch.nn.LSTM(3, 4, 2, batch_first=True).double()
    ours.load_state_dict(plain.state_dict())
    x = torch.randn(5, 7, 3, dtype=torch.float64)
    expected, _ = plain(x)
    expected.square().sum().backward()

    def loss(entries: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        states = functional_call(ours, entries, (x,))
        return states.square().sum(), states

    gradients, states = grad(loss, has_aux=True)(dict(ours.named_parameters()))
    torch.testing.assert_close(states, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours(x), expected, rtol=0, atol=0)
    for name, entry in plain.named_parameters():
        torch.testing.assert_close(gradients[name], entry.grad, rtol=1e-10, atol=1e-12)


def test_a_batch_of_padding_leaves_the_statistics():
    layer = masked_norm()
    layer.mask = torch.zeros(2, dtype=torch.bool)
    assert layer(torch.randn(2, 3, 2, 2)).isfinite().all()
    assert layer.updated is not None
    torch.testing.assert_close(layer.updated, (torch.zeros(3), torch.ones(3)))


def test_branches_of_two_shapes_are_told_and_not_broadcast():
    network = Residual(torch.nn.Linear(4, 1))
    with pytest.raises(
        ValueError, match=r"must give the same shape, got \[1\] from the body and \[4\] from the shortcut"
    ):
        network(torch.ones(2, 4))
