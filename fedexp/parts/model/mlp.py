"""Multilayer perceptron on the flattened example; 784-128-10 on MNIST has 101,770 parameters."""

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Annotated

from torch import nn

from fedexp.core.part import Range
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.contract import Model


@dataclass(frozen=True, kw_only=True)
class MLP(Model):
    """Linear layers with ReLU between them; `hidden` gives the widths, an empty list is softmax regression."""

    hidden: tuple[Annotated[int, Range(1)], ...] = (128,)

    def network(self, facts: Facts) -> nn.Module:
        widths = [prod(facts.shape), *self.hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(widths[-1], facts.classes))
