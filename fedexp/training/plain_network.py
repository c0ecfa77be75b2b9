"""Checks that a network consists of plain modules whose entries fit in a row; ties parameters that share memory.

A row holds every entry once. What PyTorch keeps in other ways is refused: parameters without a shape or without
values, programs that were compiled from a module.
"""

from collections.abc import Iterator

import torch
from torch import nn

from fedexp.core.errors import ConfigError


def refuse_modules(who: str, network: nn.Module) -> None:
    """Raises ConfigError unless all modules of a network are plain, and their entries have shapes and values."""
    for name, layer in every_module(network):
        label = f"{name} ({type(layer).__name__})" if name else type(layer).__name__
        if "_orig_mod" in vars(layer).get("_modules", {}):
            raise ConfigError(f"{who}: {name or 'network'} must not be compiled; leave out torch.compile")
        if isinstance(layer, torch.jit.ScriptModule):
            raise ConfigError(f"{who}: {name or 'network'} must not be compiled; leave out torch.jit.script or trace")
        if "_modules" not in vars(layer):
            raise ConfigError(f"{who}: {label} must call super().__init__() first in its __init__, but does not")
        for entry_name, entry in [*layer._parameters.items(), *layer._buffers.items()]:
            _refuse_entry(who, f"{name}.{entry_name}".lstrip("."), entry)


def _refuse_entry(who: str, name: str, entry: torch.Tensor | None) -> None:
    if entry is None:
        return
    if nn.parameter.is_lazy(entry):
        raise ConfigError(
            f"{who}: {name} must have a shape before the first example, but is lazy; give the layer its sizes "
            "(model.factory is given shape and classes)"
        )
    if entry.is_meta:
        raise ConfigError(f"{who}: {name} must have values, but lies on the device meta; build the network without it")


def every_module(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yields the modules of a network by name, also of one whose constructor was not called."""
    left, seen = [("", network)], set()
    while left:
        name, layer = left.pop()
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        yield name, layer
        if not isinstance(layer, torch.jit.ScriptModule):
            inner = reversed(vars(layer).get("_modules", {}).items())
            left += [(f"{name}.{own}".lstrip("."), each) for own, each in inner if each is not None]


def tie_shared(who: str, network: nn.Module) -> None:
    """Makes parameters that share their memory one parameter: `a.weight.data = b.weight.data` as `a.weight = b.weight`.

    Raises:
        ConfigError: they share a part of it, or in another shape.
    """
    first, entry = "", torch.empty(0)
    for name, other in sorted(network.named_parameters(), key=lambda each: each[1].data_ptr()):
        if not entry.numel() or not other.numel() or other.data_ptr() >= _end(entry):
            first, entry = name, other
            continue
        if (entry.data_ptr(), entry.shape, entry.stride()) != (other.data_ptr(), other.shape, other.stride()):
            raise ConfigError(
                f"{who}: parameters {first} and {name} must not share a part of their memory, or in another shape; "
                "use one parameter in both places"
            )
        layer, _, own = name.rpartition(".")
        setattr(network.get_submodule(layer), own, entry)


def _end(entry: torch.Tensor) -> int:
    """Returns the address behind the last byte of a tensor."""
    last = sum((size - 1) * stride for size, stride in zip(entry.shape, entry.stride(), strict=True))
    return entry.data_ptr() + (last + 1) * entry.element_size()
