"""The selection thesis' ComplexCNN as in its listing: six 3x3 convolutions with BatchNorm; 1,342,122 on CIFAR-10.

The thesis' text names an extra layer of 192 units that neither its listing nor its code has. Pooling comes before
ReLU: the two commute, and ReLU has a quarter of the work.
"""

from dataclasses import dataclass

from torch import nn

from fedexp.data.dataset import Facts
from fedexp.models.layers import BatchNorm, images
from fedexp.roles import Model

WIDTHS = (32, 32, 64, 64, 128, 128)


@dataclass(frozen=True, kw_only=True)
class ComplexCNN(Model):
    """Six times (convolution, BatchNorm, ReLU), 2x2 max pooling after every second, then 512 units and the classes."""

    def refuse(self, facts: Facts) -> None:
        images(facts.shape, "complex_cnn", 8)

    def network(self, facts: Facts) -> nn.Module:
        channels, height, width = images(facts.shape, "complex_cnn", 8)
        layers: list[nn.Module] = []
        for position, outputs in enumerate(WIDTHS):
            layers += [nn.Conv2d(channels, outputs, 3, padding=1), BatchNorm(outputs)]
            layers += [nn.MaxPool2d(2), nn.ReLU()] if position % 2 else [nn.ReLU()]
            channels = outputs
        flat = channels * (height // 8) * (width // 8)
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, 512), nn.ReLU(), nn.Linear(512, facts.classes))
