"""Manual forward and backward passes, without autograd, of networks that are chains of known layers.

The gradient goes straight into a flat row. Everything else is left to autograd: other networks, unusual settings of
known layers, and subclasses of them, which may do anything. A max pool behind a ReLU is taken before it: the two
commute, gradients included, and ReLU then has a fraction of the work.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from fedexp.parts.layers import BatchNorm, OneChannel
from fedexp.training.chains import Link, links
from fedexp.training.draws import Draws
from fedexp.training.lowered_layers import PRODUCTS, Lowered, Widened
from fedexp.training.precision import lowers
from fedexp.training.written_layers import (
    Affine,
    Channel,
    Convolution,
    Dropout,
    Flatten,
    Place,
    Pool,
    ReLU,
    Same,
    Tanh,
    Written,
)
from fedexp.training.written_norms import GroupNorm, Norm


class WrittenPass:
    """The manual layers of a network, forwards and backwards. A batch needs at least `min_batch` examples."""

    def __init__(self, layers: Sequence[Written], first: int) -> None:
        """`first` is the position of the first layer with entries; gradients before it are not needed."""
        self.forth = [layer.forward for layer in layers]
        self.back = [layer.backward for layer in reversed(layers[first:])]
        self.least = 2 if any(isinstance(layer, Norm) for layer in layers) else 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the outputs `[B, *outputs]` for `x [B, *shape]`, in training mode."""
        for step in self.forth:
            x = step(x)
        return x

    def backward(self, slope: torch.Tensor) -> None:
        """Writes the gradient of the entries into the flat row, given that at the outputs, `[B, *outputs]`."""
        for step in self.back:
            slope = step(slope)


def written(network: nn.Module, slopes: dict[str, torch.Tensor], dims: int, draws: Draws | None) -> WrittenPass | None:
    """Returns the manual passes of a network; None if one of its layers is not supported.

    The entries of the network must stay where they are. `slopes` are the views that take their gradients, by name;
    inputs have `dims` dimensions, `[B, ...]`; dropout is drawn from `draws`.
    """
    chain, lowered = links(network, lowered=True), lowers(network)
    made: list[Written] = []
    first: int | None = None
    for name, layer in pooled_first(chain or []):
        own = {entry: slopes[f"{name}.{entry}" if name else entry] for entry, _ in layer.named_parameters()}
        place = Place(own, dims, first is not None, bool(made) and made[-1].fresh, draws)
        one = MAKERS[type(layer)](layer, place) if type(layer) in MAKERS else None
        if one is None:
            return None
        if lowered and isinstance(layer, PRODUCTS):
            one = Lowered(layer, place, MAKERS[type(layer)])
        first = len(made) if own and first is None else first
        dims = one.dims(dims)
        made.append(one)
    return None if first is None else WrittenPass([*made, *([Widened()] if lowered else [])], first)


def pooled_first(chain: Sequence[Link]) -> list[Link]:
    """Returns the chain with each max pool moved before the ReLU that it follows."""
    found = list(chain)
    for place in range(1, len(found)):
        if type(found[place][1]) in (nn.MaxPool1d, nn.MaxPool2d) and type(found[place - 1][1]) is nn.ReLU:
            found[place - 1 : place + 1] = reversed(found[place - 1 : place + 1])
    return found


def _convolution(layer: nn.Conv1d | nn.Conv2d, place: Place) -> Written | None:
    usual = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return Convolution(layer, place) if usual and place.dims == len(layer.kernel_size) + 2 else None


def _pool(layer: nn.MaxPool1d | nn.MaxPool2d, place: Place) -> Written | None:
    dims = 3 if isinstance(layer, nn.MaxPool1d) else 4
    return Pool(layer) if place.dims == dims and not layer.return_indices else None


def _norm(layer: BatchNorm, place: Place) -> Written | None:
    return (
        Norm(layer, place)
        if layer.affine and layer.track_running_stats and layer.momentum == layer.step and place.dims == 4
        else None
    )


def _group_norm(layer: nn.GroupNorm, place: Place) -> Written | None:
    return GroupNorm(layer, place) if layer.affine and place.dims > 2 else None


def _dropout(layer: nn.Dropout | nn.Dropout2d, place: Place) -> Written | None:
    if layer.p == 0:
        return Same()
    images = isinstance(layer, nn.Dropout) or place.dims == 4
    return Dropout(layer, place.draws) if layer.p < 1 and images and place.draws is not None else None


def _flatten(layer: nn.Flatten, _: Place) -> Written | None:
    return Flatten() if (layer.start_dim, layer.end_dim) == (1, -1) else None


Maker = Callable[[Any, Place], Written | None]
MAKERS: dict[type[nn.Module], Maker] = {
    nn.Linear: lambda layer, place: Affine(layer, place) if place.dims == 2 else None,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.ReLU: lambda _, place: ReLU(place),
    nn.Tanh: lambda *_: Tanh(),
    nn.MaxPool1d: _pool,
    nn.MaxPool2d: _pool,
    BatchNorm: _norm,
    nn.GroupNorm: _group_norm,
    nn.Dropout: _dropout,
    nn.Dropout2d: _dropout,
    nn.Flatten: _flatten,
    nn.Identity: lambda *_: Same(),
    OneChannel: lambda *_: Channel(),
}
