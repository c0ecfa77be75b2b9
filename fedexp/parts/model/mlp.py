"""Multilayer perceptron on the flattened example; 784-128-10 on MNIST has 101,770 parameters.

Dropout comes behind ReLU. Before it, where some write it, the numbers are the same: the two commute.
"""

from itertools import pairwise
from math import prod
from typing import Annotated

from torch import nn

from fedexp.parts import Facts, Range
from fedexp.parts.model.initialised import InitialisedModel, refuse_text


class MLP(InitialisedModel):
    """Linear layers with ReLU between them, and dropout after each; `hidden` gives the widths between the ends."""

    hidden: tuple[Annotated[int, Range(1)], ...] = (128,)
    dropout: Annotated[float, Range(0, 1, high_open=True)] = 0.0

    def refuse(self, facts: Facts) -> None:
        refuse_text(facts, "mlp")

    def network(self, facts: Facts) -> nn.Sequential:
        widths = [prod(facts.shape), *self.hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
            layers += [nn.Dropout(self.dropout)] if self.dropout else []
        return nn.Sequential(*layers, nn.Linear(widths[-1], facts.classes))
