"""A loss of users."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from fedexp.parts import Loss


def squares(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The squared distance of the logits from 1 for the label and 0 for the others."""
    return logits.square().sum(dim=-1) - 2 * logits.gather(-1, labels[..., None])[..., 0] + 1


LOSSES: dict[str, Callable[..., Any]] = {
    "squares": squares,
    "usual": lambda logits, labels: F.cross_entropy(logits, labels, reduction="none"),
    "mean": lambda logits, labels: F.cross_entropy(logits, labels),
    "classwise": lambda logits, labels: logits.square(),
    "whole": lambda logits, labels: labels,
    "number": lambda logits, labels: 1.0,
}


class Costing(Loss):
    takes = ("class",)

    cost: str

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return LOSSES[self.cost](outputs, targets)
