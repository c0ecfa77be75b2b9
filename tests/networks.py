"""Shapes of the usual datasets, and what a network comes to on them."""

import torch

from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.contract import Model

MNIST, CIFAR, HAR, TABLE = (1, 28, 28), (3, 32, 32), (6, 128), (561,)


def parameters(model: Model, shape: tuple[int, ...], classes: int) -> int:
    """How many numbers are trained; the network answers two examples with one number a class."""
    network = model.network(Facts(shape, classes, 100))
    answers = network(torch.zeros((2, *shape))).shape
    if answers != (2, classes):
        raise AssertionError(f"the answers have the shape {tuple(answers)}")
    return Layout.of(network).parameters
