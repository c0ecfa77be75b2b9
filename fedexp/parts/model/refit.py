"""torchvision's classifiers, fitted to the examples and to federated training, with weights from a file if asked.

Group normalisation (Wu and He 2018, arXiv 1803.08494) takes the place of batch normalisation where clients' statistics
differ (Hsieh et al. 2020, arXiv 1910.00189). The small stem is that of ResNets for CIFAR-10 (He et al. 2016, arXiv
1512.03385): images of 32 x 32 pixels would be 8 x 8 behind the usual one.
"""

import math
import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from fedexp.files.untrusted import is_stored
from fedexp.parts import BatchNorm, ConfigError, Facts, did_you_mean, first_line

STEMS = (("conv1", "maxpool"), ("features.conv0", "features.pool0"))  # of ResNets and DenseNets: convolution and pool
EXTRA_ARGUMENTS: dict[str, dict[str, Any]] = {  # networks with other answers in training unless told otherwise
    "googlenet": {"aux_logits": False, "init_weights": True},
    "inception_v3": {"aux_logits": False, "init_weights": True},
}


def adapted_classifier(
    facts: Facts, name: str, norm: Literal["batch", "group"], groups: int, stem: Literal["image", "small"]
) -> nn.Module:
    """A classifier of torchvision for images of this shape and K classes, with another normalisation or stem.

    Raises:
        ConfigError: torchvision has no such classifier, or it has no stem that could be small.
    """
    from torchvision import models

    classifiers = models.list_models(module=models)
    if name not in classifiers:
        raise ConfigError(
            f"model.name must be a classifier of torchvision, got {name}; {did_you_mean(name, classifiers)}"
        )
    network = models.get_model(name, num_classes=facts.classes, **EXTRA_ARGUMENTS.get(name, {}))
    if stem == "small":
        make_stem_small(network, name)
    fit_channels(network, facts.shape[0])
    for parent in list(network.modules()):
        for child, layer in list(parent.named_children()):
            if type(layer) is nn.BatchNorm2d:
                setattr(parent, child, group_norm(layer, groups) if norm == "group" else batch_norm(layer))
    return network


def group_norm(layer: nn.BatchNorm2d, groups: int) -> nn.GroupNorm:
    """Group normalisation instead of a layer, of at most so many groups."""
    return nn.GroupNorm(math.gcd(groups, layer.num_features), layer.num_features)


def batch_norm(layer: nn.BatchNorm2d) -> BatchNorm:
    """A layer as it works in stacked training."""
    return BatchNorm(layer.num_features, layer.eps, 0.1 if layer.momentum is None else layer.momentum)


def set_layer(network: nn.Module, name: str, layer: nn.Module) -> None:
    """Replaces the layer of this dotted name."""
    parent, _, attribute = name.rpartition(".")
    setattr(network.get_submodule(parent), attribute, layer)


def convolution_like(inputs: int, like: nn.Conv2d, **changes: Any) -> nn.Conv2d:
    """A convolution as `like` with other inputs and these changes, in He's initialisation as in ResNets."""
    settings = {key: getattr(like, key) for key in ("kernel_size", "stride", "padding", "dilation", "groups")}
    layer = nn.Conv2d(inputs, like.out_channels, bias=like.bias is not None, **{**settings, **changes})
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


def make_stem_small(network: nn.Module, name: str) -> None:
    """Makes the first convolution one of 3 x 3 with stride 1, without a pool behind it; ConfigError where it cannot."""
    layers = dict(network.named_modules())
    for first, pool in STEMS:
        large = layers.get(first)
        if isinstance(large, nn.Conv2d) and large.stride == (2, 2) and isinstance(layers.get(pool), nn.MaxPool2d):
            set_layer(network, first, convolution_like(large.in_channels, large, kernel_size=3, stride=1, padding=1))
            set_layer(network, pool, nn.Identity())
            return
    raise ConfigError(
        f"model.stem must be image for model.name={name}, got small: only ResNets, ResNeXts and DenseNets begin with a "
        "convolution and a pool of stride 2"
    )


def fit_channels(network: nn.Module, channels: int) -> None:
    """Gives the first convolution as many input channels as the images have."""
    name, first = next((name, layer) for name, layer in network.named_modules() if isinstance(layer, nn.Conv2d))
    if first.in_channels != channels:
        set_layer(network, name, convolution_like(channels, first))


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """The weights (any shape) in a file that `torch.save(network.state_dict(), path)` wrote; nothing in it is executed.

    Raises:
        ConfigError: there is no such file, or it holds something else.
    """
    if not path.expanduser().is_file():  # nor is a pipe waited for
        raise ConfigError(f"model.weights must be a file, but there is none at {path}")
    try:
        if zipfile.is_zipfile(path.expanduser()) and not is_stored(path.expanduser()):
            raise ValueError("it holds more than it has bytes")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sparse tensors and old formats, which are refused or as good
            weights = torch.load(path.expanduser(), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever reading and unpickling raise
        is_pickle = isinstance(error, pickle.UnpicklingError)  # of which PyTorch says how to run it all the same
        reason = "it is damaged, or more than tensors" if is_pickle else f"{type(error).__name__}: {first_line(error)}"
        raise ConfigError(
            f"model.weights={path} cannot be read: {reason}; give a file that "
            "torch.save(network.state_dict(), path) wrote"
        ) from error
    if not isinstance(weights, dict) or not all(isinstance(entry, torch.Tensor) for entry in weights.values()):
        raise ConfigError(f"model.weights={path} must hold a dict of tensors by name; save network.state_dict()")
    for name, entry in weights.items():
        is_dense = not (entry.is_meta or entry.is_quantized or entry.is_nested or entry.layout != torch.strided)
        if not is_dense or entry.untyped_storage().nbytes() < entry.numel() * entry.element_size():
            raise ConfigError(
                f"model.weights={path} must hold dense tensors with their values, but {str(name)[:80]} is a sparse, "
                "quantized, nested or expanded one, or one on meta; save the state_dict of a plain network"
            )
    return {str(name): entry for name, entry in weights.items() if not str(name).endswith("num_batches_tracked")}


def matching_weights(network: nn.Module, weights: dict[str, torch.Tensor], path: Path) -> dict[str, torch.Tensor]:
    """The weights (any shape) that fit the network; those of its last layer only if they have as many outputs.

    Raises:
        ConfigError: names or shapes differ elsewhere, or an entry holds numbers of another kind or no finite ones.
    """
    entries = network.state_dict()
    expected = {name: tuple(entry.shape) for name, entry in entries.items()}
    last = [name for name, layer in network.named_modules() if isinstance(layer, nn.Linear | nn.Conv2d)][-1]
    stored = {name: tuple(entry.shape) for name, entry in weights.items()}
    if stored.get(f"{last}.weight", ())[1:] == expected[f"{last}.weight"][1:] and stored != expected:
        stored |= {
            name: expected[name] for name in (f"{last}.weight", f"{last}.bias") if name in stored and name in expected
        }
    for name in (*expected, *stored):
        if stored.get(name) != expected.get(name):
            in_network, in_file = (list(shapes[name]) if name in shapes else "nothing" for shapes in (expected, stored))
            raise ConfigError(
                f"model.weights={path} must fit the network: it has {in_file} for {name}, which has {in_network} in "
                "the network; give the weights of the same model.name, model.norm and model.stem"
            )
    fits = {name: entry for name, entry in weights.items() if tuple(entry.shape) == expected[name]}
    for name, entry in fits.items():
        if entry.is_floating_point() != entries[name].is_floating_point():
            raise ConfigError(
                f"model.weights={path} must hold {entries[name].dtype} for {name}, got {entry.dtype}; save the "
                "state_dict of network.float()"
            )
        if nonfinite := int((~entry.to(entries[name].dtype).isfinite()).sum()):
            raise ConfigError(
                f"model.weights={path} must hold finite numbers, but {nonfinite:,} of {entry.numel():,} of {name} are "
                "not; give weights of a network that was trained well"
            )
    return fits
