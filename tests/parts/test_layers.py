"""Layers that models share: norms that skip padding, dropout that follows its generator."""

import torch
from torch.nn import functional as F

from fedexp.parts.layers import BatchNorm

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


def test_a_batch_of_padding_leaves_the_statistics():
    layer = masked_norm()
    layer.mask = torch.zeros(2, dtype=torch.bool)
    assert layer(torch.randn(2, 3, 2, 2)).isfinite().all()
    assert layer.updated is not None
    torch.testing.assert_close(layer.updated, (torch.zeros(3), torch.ones(3)))
