"""Which networks have batched passes, and in which order these want the entries of a row.

Legend: P trainable entries of a row, O x I: a layer's entries as lines, one an output, the bias last.
"""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from fedexp.core.values import Layout
from fedexp.parts.layers import AddChannel, BatchNorm
from fedexp.parts.local.contract import LocalRule
from fedexp.training.client.precision import computes_in_bf16
from fedexp.training.layers.convolution_form import ConvolutionSpec
from fedexp.training.layers.manual_pass import pool_before_relu
from fedexp.training.layers.sequential import NamedLayer, layer_chain

STEP_METHODS = ("clip_gradient", "direction", "update", "pull", "fill")
SHAPE_PRESERVING = (
    BatchNorm,
    nn.GroupNorm,
    nn.Dropout,
    nn.Dropout2d,
    nn.ReLU,
    nn.Tanh,
    nn.Identity,
)  # the output as the input
Shape = tuple[int, ...]


@dataclass(frozen=True)
class PlannedLayer:
    """A layer with its input's shape and the positions of its entries in a row, `[O, I]`, if it has any."""

    name: str
    layer: nn.Module
    shape: Shape
    entry_positions: torch.Tensor | None = None
    channels_first: bool = False  # of a flattening: whether it puts the channels first, as PyTorch does

    @property
    def spec(self) -> ConvolutionSpec:
        """The sizes of a convolution."""
        assert isinstance(self.layer, nn.Conv1d | nn.Conv2d)
        return ConvolutionSpec.of(self.layer, self.shape)


@dataclass(frozen=True)
class LayerPlan:
    """The layers of a network in order; `bf16` says whether they multiply in bfloat16."""

    layers: tuple[PlannedLayer, ...]
    bf16: bool = False

    @property
    def order(self) -> torch.Tensor:
        """The positions `[P]` of a row's trainable entries, in the order of the passes."""
        return torch.cat(
            [
                planned_layer.entry_positions.flatten()
                for planned_layer in self.layers
                if planned_layer.entry_positions is not None
            ]
        )

    @property
    def im2col_floats(self) -> int:
        """How many floats of im2col columns an example needs, in the forward and the backward pass."""
        specs = [
            planned_layer.spec
            for planned_layer in self.layers
            if isinstance(planned_layer.layer, nn.Conv1d | nn.Conv2d)
        ]
        backward_floats = [math.prod(spec.input_size) * math.prod(spec.kernel) * spec.outputs for spec in specs[1:]]
        return sum(spec.im2col_floats for spec in specs) + max(backward_floats, default=0)


def treats_entries_alike(rule: LocalRule) -> bool:
    """Whether a rule treats all entries of a row alike, so that their order does not matter, as ours do."""
    return all(getattr(type(rule), name).__module__.startswith("fedexp.") for name in STEP_METHODS)


def plan_layers(network: nn.Module, layout: Layout, shape: Shape) -> LayerPlan | None:
    """Plans the passes of a network for examples of this shape; None unless it is a chain of known layers."""
    chain = pool_before_relu(layer_chain(network, allow_bf16=True) or [])
    if not chain:
        return None
    layers = list(_walk_layers(chain, layout, shape))
    if len(layers) < len(chain) or len(layers[-1].shape) != 1:
        return None
    plan = LayerPlan(tuple(layers), computes_in_bf16(network))
    with_entries = [
        planned_layer.entry_positions for planned_layer in layers if planned_layer.entry_positions is not None
    ]
    covers_all = with_entries and torch.equal(plan.order.sort().values, torch.arange(layout.parameters))
    return plan if covers_all else None


def _walk_layers(chain: list[NamedLayer], layout: Layout, shape: Shape) -> Iterator[PlannedLayer]:
    """Yields every layer with its input shape, up to the first unsupported layer."""
    begins = dict(zip(layout.names, torch.tensor([0, *layout.sizes]).cumsum(0).tolist(), strict=False))
    flattened_shape: Shape | None = None  # the images that were flattened as they lie, channels last
    for position, (name, layer) in enumerate(chain):
        if not _is_supported(layer, shape):
            return
        entries = {
            entry_name: begins[f"{name}.{entry_name}" if name else entry_name]
            + torch.arange(entry.numel()).view(entry.shape)
            for entry_name, entry in layer.named_parameters()
        }
        following = chain[position + 1][1] if position + 1 < len(chain) else None
        channels_first = type(layer) is nn.Flatten and type(following) is not nn.Linear
        yield PlannedLayer(
            name, layer, shape, _entry_positions(entries, flattened_shape) if entries else None, channels_first
        )
        flattened_shape = shape if type(layer) is nn.Flatten and not channels_first and len(shape) > 1 else None
        shape = _output_shape(layer, shape)


def _entry_positions(entries: dict[str, torch.Tensor], flattened_shape: Shape | None) -> torch.Tensor:
    """Returns the positions of a layer's entries as a matrix `[O, I]`, channels last."""
    weight = entries["weight"]
    if weight.dim() == 1:  # of a normalising layer: the scales, and the shifts
        return torch.stack([weight, entries["bias"]])
    if flattened_shape is not None:
        weight = weight.view(len(weight), flattened_shape[0], -1)
    if weight.dim() > 2:
        weight = weight.movedim(1, -1).flatten(1)
    return torch.cat([weight, entries["bias"][:, None]], dim=1) if "bias" in entries else weight


def _output_shape(layer: nn.Module, shape: Shape) -> Shape:
    """Returns the output shape of a layer by its input shape, on the meta device."""
    if isinstance(layer, SHAPE_PRESERVING):
        return shape
    meta_input = torch.empty((2, *shape), device="meta", dtype=torch.float32)
    return tuple(type(layer).forward(copy.deepcopy(layer).to("meta", torch.float32), meta_input).shape[1:])


def _is_supported(layer: nn.Module, shape: Shape) -> bool:
    """Whether a layer with these settings and this input shape has batched passes."""
    kind, dims = type(layer), len(shape)
    if isinstance(layer, nn.Conv1d | nn.Conv2d) and kind in (nn.Conv1d, nn.Conv2d):
        usual = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
        return usual and dims == len(layer.kernel_size) + 1
    if isinstance(layer, nn.MaxPool1d | nn.MaxPool2d) and kind in (nn.MaxPool1d, nn.MaxPool2d):
        return not layer.return_indices and dims == (2 if kind is nn.MaxPool1d else 3)
    if isinstance(layer, nn.Dropout | nn.Dropout2d) and kind in (nn.Dropout, nn.Dropout2d):
        return layer.p < 1 and not layer.inplace and (kind is nn.Dropout or dims == 3)
    if isinstance(layer, BatchNorm) and kind is BatchNorm:
        return layer.affine and layer.track_running_stats and layer.momentum == layer.step and dims == 3
    if isinstance(layer, nn.GroupNorm) and kind is nn.GroupNorm:
        return layer.affine and dims > 1
    if isinstance(layer, nn.Flatten) and kind is nn.Flatten:
        return (layer.start_dim, layer.end_dim) == (1, -1)
    if kind is AddChannel or kind is nn.Linear:
        return dims == 1
    return kind in (nn.ReLU, nn.Tanh, nn.Identity)
