"""The registry of layers: of which kind a layer is, and which networks are chains of supported layers.

Every module of `kinds` that has `KINDS` is read: a new kind of layer is a new file there, or a few lines in one. Where
a module has `COMPOSITES`, too, layers of these types are replaced by the layers of which they consist: that is how a
network with branches is a chain.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

from torch import nn

from fedexp.training.layers import kinds
from fedexp.training.layers.kind import LayerKind, PlannedLayer, Shape
from fedexp.training.layers.sequential import NamedLayer, flatten_sequential, full_name, layer_chain

Composite = Callable[[Any], list[NamedLayer] | None]  # the layers of a layer, if it is their chain


@cache
def _modules() -> list[ModuleType]:
    return [import_module(module.name) for module in walk_packages(kinds.__path__, f"{kinds.__name__}.")]


@cache
def _kinds_by_type() -> dict[type[nn.Module], LayerKind]:
    all_kinds = [kind for module in _modules() for kind in getattr(module, "KINDS", ())]
    return {layer_type: kind for kind in all_kinds for layer_type in kind.types}


@cache
def _composites() -> dict[type[nn.Module], Composite]:
    return {key: parts for module in _modules() for key, parts in getattr(module, "COMPOSITES", {}).items()}


def kind_of(layer: nn.Module) -> LayerKind | None:
    """Returns the kind of a layer; None if there is none for exactly its type."""
    return _kinds_by_type().get(type(layer))


def plan_chain(network: nn.Module, shape: Shape, *, in_training: bool = False) -> list[PlannedLayer] | None:
    """Returns the layers of a network for examples of this shape; None if it is no chain of supported layers.

    In training a layer is moved before those that it commutes with, and the network may compute in bfloat16, which is
    left to whoever asks.
    """
    chain, plan = list(_expand(layer_chain(network, allow_bf16=in_training) or [])), []
    for name, layer in least_work(chain) if in_training else chain:
        kind = kind_of(layer)
        if kind is None or not kind.supports(layer, shape):
            return None
        plan.append(PlannedLayer(name, layer, kind, shape))
        shape = kind.output_shape(layer, shape)
    return plan or None


def _expand(chain: Iterable[NamedLayer]) -> Iterator[NamedLayer]:
    """Yields the layers of the chain, and instead of composites the layers of which they consist."""
    for name, layer in chain:
        parts = _composites()[type(layer)](layer) if type(layer) in _composites() else None
        if parts is None:
            yield name, layer
        for part_name, part in parts or ():
            yield from _expand(flatten_sequential(full_name(name, part_name), part))


def least_work(layers: list[NamedLayer]) -> list[NamedLayer]:
    """Moves each layer of the chain, in place, before the one that it follows and commutes with; returns the chain."""
    for position in range(1, len(layers)):
        before, kind = layers[position - 1], kind_of(layers[position][1])
        if kind is not None and type(before[1]) in kind.commutes_with:
            layers[position - 1 : position + 1] = layers[position], before
    return layers
