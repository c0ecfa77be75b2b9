"""The network: write here its layers, for examples of whatever shape the dataset says.

As it stands, two linear layers with ReLU between them.
"""

from math import prod
from typing import Annotated

from torch import nn

from fedexp.parts import Facts, Model, Range


class OwnModel(Model):
    """`hidden` units between the flattened example and the classes."""

    hidden: Annotated[int, Range(1)] = 64

    def network(self, facts: Facts) -> nn.Module:
        into, out = nn.Linear(prod(facts.shape), self.hidden), nn.Linear(self.hidden, facts.classes)
        return nn.Sequential(nn.Flatten(), into, nn.ReLU(), out)
