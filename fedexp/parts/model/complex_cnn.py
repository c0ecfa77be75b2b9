"""The selection thesis' ComplexCNN as in its listing: six 3x3 convolutions with BatchNorm; 1,342,122 on CIFAR-10.

The thesis' text mentions an extra layer of 192 units that neither its listing nor its code has. Pooling comes before
ReLU: the two commute, and ReLU then has a quarter of the work.

`norm=group` replaces BatchNorm by group normalisation (Wu and He 2018, arXiv 1803.08494): each example is normalised by
its own values, so no example affects the output of another, and there are no statistics to average. The number of
parameters is the same.
"""

from typing import Literal

from torch import nn

from fedexp.parts import BatchNorm, ConfigError, Facts
from fedexp.parts.model.initialised import InitialisedModel, image_shape

WIDTHS = (32, 32, 64, 64, 128, 128)
GROUPS = 8  # of 4, 8 and 16 channels; with the paper's 32, groups of the first two layers would have one channel


class ComplexCNN(InitialisedModel):
    """Six times (convolution, norm, ReLU), 2x2 max pooling after every second, then 512 units and the classes."""

    norm: Literal["batch", "group"] = "batch"

    def check(self) -> None:
        if self.norm == "group" and self.buffers == "local":
            raise ConfigError(
                "ComplexCNN.buffers must be average with norm=group, which has no statistics for a client to keep, got "
                "local; leave it out or use norm=batch"
            )

    def refuse(self, facts: Facts) -> None:
        image_shape(facts, "complex_cnn", 8)

    def network(self, facts: Facts) -> nn.Module:
        channels, height, width = image_shape(facts, "complex_cnn", 8)
        layers: list[nn.Module] = []
        for position, outputs in enumerate(WIDTHS):
            norm = BatchNorm(outputs) if self.norm == "batch" else nn.GroupNorm(GROUPS, outputs)
            layers += [nn.Conv2d(channels, outputs, 3, padding=1), norm]
            layers += [nn.MaxPool2d(2), nn.ReLU()] if position % 2 else [nn.ReLU()]
            channels = outputs
        flat = channels * (height // 8) * (width // 8)
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, 512), nn.ReLU(), nn.Linear(512, facts.classes))
