"""The network of PyTorch's MNIST example; 1,199,882 parameters on MNIST.

As in the experiments of Karimireddy et al., "Byzantine-Robust Learning on Heterogeneous Datasets via Bucketing" (ICLR
2022, arXiv 2006.09365), and in the example of 2020: after pooling, whole channels are dropped (today's example drops
single values). Its log-softmax is part of the loss here. Pooling comes before ReLU: the two commute.
"""

from dataclasses import dataclass

from torch import nn

from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.drawn import Drawn, images


def layers(shape: tuple[int, int, int], classes: int, dropout: nn.Module) -> nn.Sequential:
    """The network for images of `shape` (channels, height, width), with this dropout after the convolutions."""
    channels, height, width = shape
    flat = 64 * ((height - 4) // 2) * ((width - 4) // 2)
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.MaxPool2d(2),
        nn.ReLU(),
        dropout,
        nn.Flatten(),
        nn.Linear(flat, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, classes),
    )


@dataclass(frozen=True, kw_only=True)
class TorchMnistCNN(Drawn):
    """3x3 convolutions of 32 and 64 channels, pooling, dropout of channels, 128 units, dropout, the classes."""

    def refuse(self, facts: Facts) -> None:
        images(facts, "torch_mnist_cnn", 6)

    def network(self, facts: Facts) -> nn.Sequential:
        return layers(images(facts, "torch_mnist_cnn", 6), facts.classes, nn.Dropout2d(0.25))
