"""The network of the Keras notebook: two 3x3 'same' convolutions of 32 and 64 channels, dropout 0.4, one linear layer.

The cross-entropy gets logits. With `outputs=probabilities` it takes softmax outputs for logits; no loss can then be
below log(1 + 9 / e) = 1.461 with 10 classes. With `outputs=tested_as_probabilities` that is so where the network is
tested only, as in the notebook, whose printed test losses therefore follow from its accuracies.
"""

from typing import Annotated, Literal

import torch
from torch import nn

from fedexp.parts import Facts, Range
from fedexp.parts.model.initialised import InitialisedModel, image_shape


class KerasCNN(InitialisedModel):
    """Convolution 32, ReLU, pooling, convolution 64, ReLU, dropout, pooling, linear."""

    dropout: Annotated[float, Range(0, 1, high_open=True)] = 0.4
    outputs: Literal["logits", "probabilities", "tested_as_probabilities"] = "logits"

    def refuse(self, facts: Facts) -> None:
        image_shape(facts, "keras_cnn", 4)

    def network(self, facts: Facts) -> nn.Module:
        channels, height, width = image_shape(facts, "keras_cnn", 4)
        return nn.Sequential(
            nn.Conv2d(channels, 32, 3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.Dropout(self.dropout),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64 * (height // 4) * (width // 4), facts.classes),
            *LAST[self.outputs],
        )


class SoftmaxWhenTested(nn.Module):
    """Soft-max of logits `[B, K]` where the network is evaluated; in training the logits stay."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logits `[B, K]` in training, probabilities else."""
        return x if self.training else x.softmax(dim=1)


LAST: dict[str, list[nn.Module]] = {
    "logits": [],
    "probabilities": [nn.Softmax(dim=1)],
    "tested_as_probabilities": [SoftmaxWhenTested()],
}
