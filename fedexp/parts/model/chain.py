"""A network as a list of layers in text, from the config alone.

    fedexp run dataset=mnist model=chain 'model.layers=[conv 8 3, pool 2, relu, flatten, linear]'

The words are the functions below; the numbers behind a word are its arguments, in their order or behind their names:
`conv 16 8 stride 2 padding 3`. `linear` without a number gives one output a class. A `sigmoid` may stand behind it, as
in some published programs; the loss and the metrics still take what comes out for logits.

The published chains of `conf/model` are such lists, and their files name the sources. Pooling stands before ReLU there:
the two commute, gradients included, and ReLU has a quarter of the work. Legend: B batch, C channels, H x W pixels.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.parts import BatchNorm, ConfigError, Facts, did_you_mean, first_line
from fedexp.parts.model.initialised import InitialisedModel, image_shape, refuse_text

LARGEST_SIDE = 256  # pixels, up to which the smallest images of a chain are looked for


def conv(channels: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> nn.Module:
    """A convolution of images."""
    return nn.Conv2d(channels, outputs, kernel, stride, padding)


def pool(_: int, size: int, stride: int = 0, padding: int = 0) -> nn.Module:
    """Max pooling; windows do not overlap unless `stride` is given."""
    return nn.MaxPool2d(size, stride or None, padding)


def batch_norm(channels: int) -> nn.Module:
    """Batch normalisation of images."""
    return BatchNorm(channels)


def group_norm(channels: int, groups: int) -> nn.Module:
    """Group normalisation of images."""
    return nn.GroupNorm(groups, channels)


def channel_dropout(_: int, p: float) -> nn.Module:
    """Drops whole channels of images."""
    return nn.Dropout2d(p)


def linear(inputs: int, outputs: int) -> nn.Module:
    """A linear layer on flattened values."""
    return nn.Linear(inputs, outputs)


def dropout(_: int, p: float) -> nn.Module:
    """Drops single values."""
    return nn.Dropout(p)


WITHOUT_ARGUMENTS = {  # for any shape
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
    "flatten": nn.Flatten,
}
IMAGE_LAYERS = (conv, pool, batch_norm, group_norm, channel_dropout)
MAKERS = (*IMAGE_LAYERS, linear, dropout)
LAYER_FACTORIES: dict[str, Callable[..., nn.Module]] = {maker.__name__: maker for maker in MAKERS}
LAYER_NAMES = [*LAYER_FACTORIES, *WITHOUT_ARGUMENTS]


class Chain(InitialisedModel):
    """Layers in sequence, each a name with its arguments."""

    layers: tuple[str, ...]

    @property
    def option(self) -> str:
        """The option of `conf/model` that has these layers; `chain` for a list of one's own."""
        return published_chains().get(self.layers, "chain")

    def check(self) -> None:
        if self.layers[-1:] != ("linear",) and self.layers[-2:] != ("linear", "sigmoid"):
            raise ConfigError(
                "Chain.layers must end with linear without a number, which gives one output a class; only sigmoid may "
                "stand behind it"
            )
        for text in self.layers:
            parse_layer(text)

    def refuse(self, facts: Facts) -> None:
        refuse_text(facts, self.option)
        if facts.targets == "labels" and self.layers[-1] == "sigmoid":
            raise ConfigError(
                "Chain.layers: sigmoid must not stand behind the last layer where an example has several labels, since "
                "their loss takes a sigmoid of the outputs itself; leave it out"
            )
        try:
            layer_shapes(self.layers, facts.shape, facts.classes)
        except ConfigError:
            for side in range(1, LARGEST_SIDE + 1):
                if fits_images(self.layers, facts.shape[0], side):
                    image_shape(facts, self.option, side)
            raise

    def network(self, facts: Facts) -> nn.Sequential:
        shapes = zip(self.layers, layer_shapes(self.layers, facts.shape, facts.classes), strict=True)
        return nn.Sequential(*(make_layer(text, shape, facts.classes) for text, shape in shapes))


@cache
def layer_shapes(layers: tuple[str, ...], shape: tuple[int, ...], classes: int) -> list[tuple[int, ...]]:
    """The input shape of every layer for one example.

    Raises:
        ConfigError: a layer cannot take what the one before it makes; names both.
    """
    shapes = []
    for number, text in enumerate(layers, start=1):
        shapes.append(tuple(shape))
        try:
            shape = output_shape(text, shapes[-1], classes)
        except (RuntimeError, ValueError) as error:
            raise ConfigError(
                f"model.layers: {text} (layer {number} of {len(layers)}) cannot take values of shape "
                f"{list(shapes[-1])}: {first_line(error)}; change it or the layers before it"
            ) from error
    return shapes


@torch.no_grad()
def output_shape(text: str, shape: tuple[int, ...], classes: int) -> tuple[int, ...]:
    """The shape of what a layer makes of one example of this shape.

    An example of zeros passes through it; on the meta device PyTorch would first import its compiler, for 2 s.
    """
    if parse_layer(text)[0] == linear.__name__:
        with torch.device("meta"):  # no weights are drawn: they may be many
            layer = make_layer(text, shape, classes)
        assert isinstance(layer, nn.Linear)
        return (layer.out_features,)
    with torch.random.fork_rng(devices=()):
        return tuple(make_layer(text, shape, classes).eval()(torch.zeros((1, *shape))).shape[1:])


@cache
def fits_images(layers: tuple[str, ...], channels: int, side: int) -> bool:
    """Whether the layers take images of this size."""
    try:
        return bool(layer_shapes(layers, (channels, side, side), 2))
    except ConfigError:
        return False


def make_layer(text: str, shape: tuple[int, ...], classes: int) -> nn.Module:
    """A layer that takes values of this shape; ValueError where it takes another kind of values."""
    name, arguments = parse_layer(text)
    if name in WITHOUT_ARGUMENTS:
        return WITHOUT_ARGUMENTS[name]()
    factory = LAYER_FACTORIES[name]
    if factory in IMAGE_LAYERS and len(shape) != 3:
        raise ValueError("they are no images (channels, height, width)")
    if factory is linear:
        if len(shape) != 1:
            raise ValueError("they are not in one line; put flatten before it")
        arguments = {"outputs": classes, **arguments}
    return factory(shape[0], **arguments)


def parse_layer(text: str) -> tuple[str, dict[str, Any]]:
    """The name of a layer and its arguments by name.

    Raises:
        ConfigError: there is no such word, or other numbers belong to it.
    """
    word, *arguments = text.split() or [""]
    if word not in LAYER_NAMES:
        raise ConfigError(
            f"Chain.layers must be made of {', '.join(LAYER_NAMES)}, got {text!r}; {did_you_mean(word, LAYER_NAMES)}"
        )
    parameters = [*inspect.signature(LAYER_FACTORIES[word]).parameters.values()][1:] if word in LAYER_FACTORIES else []
    names = [parameter.name for parameter in parameters]
    count = next((position for position, token in enumerate(arguments) if token in names), len(arguments))
    pairs = [
        *zip(names, arguments[:count], strict=False),
        *zip(arguments[count::2], arguments[count + 1 :: 2], strict=False),
    ]
    sizes = {name: _number(name, value) for name, value in pairs}
    missing = [entry.name for entry in parameters if entry.default is entry.empty and entry.name not in sizes]
    token_count = min(count, len(names)) + 2 * (len(pairs) - min(count, len(names)))
    if (
        token_count != len(arguments)
        or len(sizes) < len(pairs)
        or not sizes.keys() <= set(names)
        or None in sizes.values()
        or (missing and text != "linear")
    ):
        usage = [entry.name.upper() if entry.default is entry.empty else f"[{entry.name} N]" for entry in parameters]
        raise ConfigError(f"Chain.layers: {word} must be written as {' '.join([word, *usage])}, got {text!r}")
    return word, sizes


def _number(name: str, text: str) -> float | None:
    """A probability below 1, or a whole number from 1 (a padding: from 0) to a million; None where it is neither."""
    if name == "p":
        return float(text) if text.replace(".", "", 1).isdecimal() and float(text) < 1 else None
    return int(text) if text.isdecimal() and len(text) < 7 and (int(text) or name == "padding") else None


@cache
def published_chains() -> dict[tuple[str, ...], str]:
    """The options of `conf/model` that are lists of layers, by their layers."""
    parts = {name: catalog.part(conf_dir(), "model", name) for name in catalog.options(conf_dir(), "model")}
    return {tuple(part["layers"]): name for name, part in parts.items() if isinstance(part.get("layers"), list)}
