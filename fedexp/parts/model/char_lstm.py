"""Two LSTM layers that read characters; 819,920 parameters for LEAF's 80 characters.

The network of the Shakespeare task: an embedding of 8 numbers, two layers of 256 units, one answer a class. Caldas et
al., "LEAF: A Benchmark for Federated Settings" (2018, arXiv 1812.01097) predict the next character from the last place;
Reddi et al., "Adaptive Federated Optimization" (ICLR 2021, arXiv 2003.00295) the next one at every place, which is done
here where the dataset's targets are tokens. The text of Li et al. (FedProx, arXiv 1812.06127) has 100 units:
`model.hidden=100`.

An LSTM of PyTorch has two biases a gate where TensorFlow has one: 2,048 numbers more than in those papers.
Legend: B batch, L length, E numbers of an embedding, H units, K classes.
"""

from typing import Annotated

import torch
from torch import nn

from fedexp.parts import LSTM, ConfigError, Facts, Range
from fedexp.parts.model.initialised import InitialisedModel

Width = Annotated[int, Range(1)]


class LSTMNetwork(nn.Module):
    """Maps tokens `[B, L]` to one answer an example, `[B, K]`, or one a token, `[B, L, K]`."""

    def __init__(self, vocabulary: int, widths: tuple[int, int, int], classes: int, *, every: bool) -> None:
        super().__init__()
        embedding, hidden, layers = widths
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = LSTM(embedding, hidden, layers)
        self.last = nn.Linear(hidden, classes)
        self.every = every

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits `[B, K]` or `[B, L, K]` of tokens `[B, L]`."""
        hidden_states = self.lstm(self.embedding(x))
        return self.last(hidden_states if self.every else hidden_states[:, -1])


class CharLSTM(InitialisedModel):
    """`layers` of `hidden` units above an embedding of `embedding` numbers."""

    embedding: Width = 8
    hidden: Width = 256
    layers: Width = 2

    def refuse(self, facts: Facts) -> None:
        if not facts.vocabulary:
            raise ConfigError(
                f"model=char_lstm needs text, but the dataset's examples have shape {facts.shape} and no vocabulary; "
                "use model=mlp, which takes any shape"
            )

    def network(self, facts: Facts) -> LSTMNetwork:
        widths = (self.embedding, self.hidden, self.layers)
        return LSTMNetwork(facts.vocabulary, widths, facts.classes, every=facts.targets == "tokens")
