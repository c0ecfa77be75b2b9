"""Networks as users have them for other purposes: plain modules that know nothing of fedexp."""

from typing import Any

import torch
from torch import nn

from fedexp.parts import Residual


def small(shape: tuple[int, ...], classes: int) -> nn.Module:
    """A network for examples of this shape."""
    flat = int(torch.tensor(shape).prod())
    return nn.Sequential(nn.Flatten(), nn.Linear(flat, 6), nn.Tanh(), nn.Dropout(0.2), nn.Linear(6, classes))


def sums(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Branches of convolutions and of a grouped one, for images of 8 x 8 pixels."""
    body = nn.Sequential(nn.GELU(), nn.Conv2d(4, 4, 3, padding=1, groups=2))
    first, shortcut = nn.Conv2d(shape[0], 4, 3, padding=1), nn.Conv2d(4, 4, 1)
    return nn.Sequential(first, Residual(body, shortcut), nn.ReLU(), nn.Flatten(), nn.Linear(256, classes))


class Deep(nn.Module):
    """A class of its own, in which ReLU overwrites what it is given."""

    def __init__(self, facts: Any, width: int = 5, *, depth: int) -> None:
        super().__init__()
        self.first = nn.Linear(facts.shape[0], width)
        self.middle = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.act = nn.ReLU(inplace=True)
        self.last = nn.Linear(width, facts.classes)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.first(x))
        for layer in self.middle:
            x = self.act(layer(x))
        return self.last(x)


class Counting(nn.Module):
    """A linear layer that counts its batches: as a float, which travels with a model, and as an integer."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(int(torch.tensor(shape).prod()), classes)
        self.batches: torch.Tensor
        self.num_batches_tracked: torch.Tensor
        self.register_buffer("batches", torch.zeros(1))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.batches += 1
            self.num_batches_tracked += 1
        return self.linear(x.flatten(1))


def failing(classes: int) -> nn.Module:
    """Never gives a network."""
    raise ZeroDivisionError(f"for {classes} classes")


def text(classes: int) -> str:
    """Gives something else."""
    return "x" * classes


class Hooked(nn.Linear):
    """Whose gradients go through a function that fails once training has begun."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__(shape[0], classes)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        scores = super().forward(input)
        if scores.requires_grad:
            scores.register_hook(torn)
        return scores


def torn(gradient: torch.Tensor) -> torch.Tensor:
    """Passes the gradients of first steps on a few examples on, and fails with those of training."""
    if len(gradient) <= 4:
        return gradient
    raise KeyError(f"a gradient of {gradient.shape[1]} classes")


NUMBER = 3
