"""The network of the CIFAR-10 benchmark of pfl-research; 1,626,442 parameters on CIFAR-10.

Granqvist et al., "pfl-research: simulation framework for accelerating research in Private Federated Learning" (NeurIPS
2024, arXiv 2404.06430). Its first weights are Glorot's. Here its biases begin at zero, as in Keras; the benchmark
leaves them to PyTorch. Pooling comes before ReLU: the two commute.
"""

from dataclasses import dataclass

from torch import nn

from fedexp.core.initialise import Law
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.drawn import Drawn, images
from fedexp.parts.model.torch_mnist_cnn import layers


@dataclass(frozen=True, kw_only=True)
class PflCNN(Drawn):
    """3x3 convolutions of 32 and 64 channels, pooling, dropout 0.25, 128 units, dropout 0.5, the classes."""

    init: Law = "glorot_uniform"

    def refuse(self, facts: Facts) -> None:
        images(facts, "pfl_cnn", 6)

    def network(self, facts: Facts) -> nn.Sequential:
        return layers(images(facts, "pfl_cnn", 6), facts.classes, nn.Dropout(0.25))
