"""The network of the Keras notebook: two 3x3 'same' convolutions of 32 and 64 channels, dropout 0.4, one linear layer.

The cross-entropy gets logits. With `outputs=probabilities` it takes softmax outputs for logits, as the notebook does.
No loss can then be below log(1 + 9 / e) = 1.461 with 10 classes.
"""

from typing import Annotated, Literal

from torch import nn

from fedexp.parts import Facts, Range
from fedexp.parts.model.initialised import InitialisedModel, image_shape


class KerasCNN(InitialisedModel):
    """Convolution 32, ReLU, pooling, convolution 64, ReLU, dropout, pooling, linear."""

    dropout: Annotated[float, Range(0, 1, high_open=True)] = 0.4
    outputs: Literal["logits", "probabilities"] = "logits"

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
            *([nn.Softmax(dim=1)] if self.outputs == "probabilities" else []),
        )
