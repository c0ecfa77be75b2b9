"""ResNet-18 with group normalisation for small images; 11,173,962 parameters on CIFAR-10, 11,220,132 on CIFAR-100.

The network of the CIFAR-100 experiments of Reddi et al., "Adaptive Federated Optimization" (ICLR 2021, arXiv
2003.00295), after Hsieh et al. (2020, arXiv 1910.00189): every batch normalisation of a ResNet-18 becomes one of 2
groups. Their code has the variant that normalises before each convolution (ResNet v2) and the stem of large images;
here it is torchvision's ResNet-18 with a first convolution of 3 x 3 and no pool. He's law draws it, as theirs, but for
the last layer, which theirs draws from a normal of deviation 0.01.
"""

from typing import Annotated

from torch import nn

from fedexp.parts import Facts, Law, Range
from fedexp.parts.model.initialised import InitialisedModel, image_shape
from fedexp.parts.model.refit import adapted_classifier


class ResNet18GN(InitialisedModel):
    """`groups` of channels in each normalisation."""

    init: Law = "he_normal"
    groups: Annotated[int, Range(1)] = 2

    def refuse(self, facts: Facts) -> None:
        image_shape(facts, "resnet18_gn", 8)

    def network(self, facts: Facts) -> nn.Module:
        return adapted_classifier(facts, "resnet18", "group", self.groups, "small")
