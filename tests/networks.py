"""Shapes of the usual datasets, and what a network comes to on them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.part import build
from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model import chain
from fedexp.parts.model.contract import Model

MNIST, CIFAR, HAR, TABLE = (1, 28, 28), (3, 32, 32), (6, 128), (561,)
FEW = ("dataset.train_size=24", "dataset.test_size=12")  # four examples a client, for large networks
SMALLEST = {  # words beside `model=` for a run of each model on few and small examples
    "byzfl_cnn": ("dataset.shape=[1,16,16]",),
    "chain": ("dataset.shape=[1,8,8]", "model.layers=[conv 4 3 stride 2, group_norm 2, gelu, flatten, linear]"),
    "char_lstm": ("dataset._target_=own_texts.Texts", "dataset.shape=[5]", "model.hidden=6"),
    "cnn_2017": ("dataset.shape=[1,8,8]",),
    "complex_cnn": ("dataset.shape=[1,8,8]",),
    "har_cnn": ("dataset.shape=[3,16]",),
    "keras_cnn": ("dataset.shape=[1,8,8]",),
    "lenet": ("dataset.shape=[1,16,16]",),
    "opacus_cnn": ("dataset.shape=[1,14,14]",),
    "pfl_cnn": ("dataset.shape=[1,8,8]",),
    "resnet18_gn": ("dataset.shape=[1,8,8]", *FEW),
    "simple_cnn": ("dataset.shape=[1,8,8]",),
    "torch": ("model.factory=own_networks:small",),
    "torch_mnist_cnn": ("dataset.shape=[1,8,8]",),
    "torchvision": (
        *("dataset.shape=[1,16,16]", *FEW),
        *("model.name=shufflenet_v2_x0_5", "model.norm=group", "model.groups=2"),
    ),
    "two_conv_dropout": ("dataset.shape=[1,16,16]",),
    "vgg11": ("dataset.shape=[1,32,32]", *FEW),
}


def narrow_resnet18() -> Callable[..., nn.Module]:
    """What makes a ResNet-18 with a sixteenth of the channels behind its first layer."""
    from torchvision.models.resnet import BasicBlock, ResNet

    class Narrow(ResNet):
        def _make_layer(self, block: Any, planes: int, *args: Any, **kwargs: Any) -> nn.Sequential:
            return super()._make_layer(block, planes // 16, *args, **kwargs)

    def make(num_classes: int) -> nn.Module:
        network = Narrow(BasicBlock, [2, 2, 2, 2])
        network.fc = nn.Linear(32, num_classes)
        return network

    make.__module__ = BasicBlock.__module__  # torchvision lists it by the module
    return make


def narrow_convolution(channels: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> nn.Module:
    """A convolution of a chain with two channels in place of many."""
    return chain.conv(channels, outputs if outputs < 64 else 2, kernel, stride, padding)


def published(option: str, **keys: Any) -> Any:
    """The model of an option of `conf/model` with other values of some keys."""
    return build({**catalog.part(conf_dir(), "model", option), **keys}, "model")


def parameters(model: Model, shape: tuple[int, ...], classes: int) -> int:
    """How many numbers are trained; the network answers two examples with one number a class."""
    network = model.network(Facts(shape, classes, 100))
    answers = network(torch.zeros((2, *shape))).shape
    if answers != (2, classes):
        raise AssertionError(f"the answers have the shape {tuple(answers)}")
    return Layout.of(network).parameters


def as_published(model: Model, shape: tuple[int, ...], steps: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Answers of the network in evaluation, and those of its weights where these steps are taken one after another.

    A step is `relu`, `flat`, `fc`, `pool` (or `pool/STRIDE`), or `conv` (or `conv/STRIDE/PADDING`).
    """
    network, x = model.network(Facts(shape, 10, 100)).eval(), torch.randn(3, *shape)
    entries, seen = network.parameters(), x
    for step in steps.split():
        name, *sizes = step.split("/")
        stride, padding = int(sizes[0]) if sizes else 1, int(sizes[1]) if len(sizes) > 1 else 0
        if name in ("conv", "fc"):
            weight, bias = next(entries), next(entries)
            seen = F.conv2d(seen, weight, bias, stride, padding) if name == "conv" else F.linear(seen, weight, bias)
        elif name == "pool":
            seen = F.max_pool2d(seen, 2, stride if sizes else 2)
        else:
            seen = {"relu": F.relu, "flat": torch.Tensor.flatten}[name](seen, *([1] if name == "flat" else []))
    return network(x), seen
