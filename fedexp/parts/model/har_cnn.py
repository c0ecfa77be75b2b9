"""The clustering text's network for sensor data: 1-d convolutions (kernel 3) and three linear layers.

The text gives no widths; they are options. Its final log-softmax is part of the loss here.
"""

from typing import Annotated

from torch import nn

from fedexp.parts import AddChannel, ConfigError, Facts, Range
from fedexp.parts.model.initialised import InitialisedModel, refuse_text

Width = Annotated[int, Range(1)]


class HARCNN(InitialisedModel):
    """Twice (convolution, ReLU, pooling by 2) along time or features, then three linear layers."""

    channels: tuple[Width, ...] = (32, 64)
    linear: tuple[Width, ...] = (128, 64)

    def refuse(self, facts: Facts) -> None:
        refuse_text(facts, "har_cnn")
        if len(facts.shape) > 2 or min(facts.shape[-1:], default=0) < 2 ** len(self.channels):
            raise ConfigError(
                f"model=har_cnn needs signals (channels, length) or tables (features,) of length at least "
                f"{2 ** len(self.channels)}, but the dataset's examples have shape {facts.shape}; use model=mlp, "
                "which takes any shape"
            )

    def network(self, facts: Facts) -> nn.Module:
        inputs, length = facts.shape if len(facts.shape) == 2 else (1, facts.shape[0])
        layers: list[nn.Module] = [] if len(facts.shape) == 2 else [AddChannel()]
        for outputs in self.channels:
            layers += [nn.Conv1d(inputs, outputs, 3, padding=1), nn.MaxPool1d(2), nn.ReLU()]
            inputs, length = outputs, length // 2
        layers.append(nn.Flatten())
        inputs *= length
        for outputs in self.linear:
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
            inputs = outputs
        return nn.Sequential(*layers, nn.Linear(inputs, facts.classes))
