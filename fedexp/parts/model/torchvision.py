"""Any image classifier of torchvision: its last layer gets as many outputs as there are classes.

The first values are torchvision's own, seeded by the run, or come from a file (`weights`). A file with another number
of classes gives all layers but the last one. The first convolution takes as many channels as the images have.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import torch
from torch import nn

from fedexp.parts import ConfigError, Facts, Model, Range, first_line
from fedexp.parts.model.initialised import image_shape
from fedexp.parts.model.refit import adapted_classifier, matching_weights, read_weights


class TorchvisionNet(Model):
    """`groups` of channels in each group normalisation: at most so many, the greatest number that divides both."""

    name: str = "resnet18"
    norm: Literal["batch", "group"] = "batch"
    groups: Annotated[int, Range(1)] = 32
    stem: Literal["image", "small"] = "image"
    weights: Path | None = None

    def check(self) -> None:
        if self.norm == "group" and self.buffers == "local":
            raise ConfigError(
                "TorchvisionNet.buffers must be average with norm=group, which has no statistics for a client to keep, "
                "got local; leave it out or use norm=batch"
            )

    def refuse(self, facts: Facts) -> None:
        image_shape(facts, "torchvision", 1)
        with torch.device("meta"):  # shapes alone: nothing is drawn or computed
            network = self._adapted_network(facts)
            try:
                network.eval()(torch.empty(2, *facts.shape))
            except Exception as error:  # whatever a layer says of images that it cannot take
                raise ConfigError(
                    f"model=torchvision needs images that {self.name} can take, but those of shape {facts.shape} raise "
                    f"{type(error).__name__}: {first_line(error)}; use another model.name or model.stem=small"
                ) from error
        if self.weights is not None:
            matching_weights(network, read_weights(self.weights), self.weights)

    def without_files(self) -> Model:
        return replace(self, weights=None)

    def network(self, facts: Facts) -> nn.Module:
        network = self._adapted_network(facts)
        if self.weights is not None:
            network.load_state_dict(matching_weights(network, read_weights(self.weights), self.weights), strict=False)
        return network

    def _adapted_network(self, facts: Facts) -> nn.Module:
        return adapted_classifier(facts, self.name, self.norm, self.groups, self.stem)
