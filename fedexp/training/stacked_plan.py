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
from fedexp.parts.layers import BatchNorm, OneChannel
from fedexp.parts.local.contract import LocalRule
from fedexp.training.chains import Link, links
from fedexp.training.convolution_form import Form
from fedexp.training.precision import lowers
from fedexp.training.written_pass import pooled_first

STEPS = ("clipped", "direction", "update", "pull", "fill")
SAME = (BatchNorm, nn.GroupNorm, nn.Dropout, nn.Dropout2d, nn.ReLU, nn.Tanh, nn.Identity)  # the output as the input
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Planned:
    """A layer with its input's shape and the positions of its entries in a row, `[O, I]`, if it has any."""

    name: str
    layer: nn.Module
    shape: Shape
    lines: torch.Tensor | None = None
    turned: bool = False  # of a flattening: whether it puts the channels first, as PyTorch does

    @property
    def form(self) -> Form:
        """The sizes of a convolution."""
        assert isinstance(self.layer, nn.Conv1d | nn.Conv2d)
        return Form.of(self.layer, self.shape)


@dataclass(frozen=True)
class LayerPlan:
    """The layers of a network in order; `bf16` says whether they multiply in bfloat16."""

    layers: tuple[Planned, ...]
    lowered: bool = False

    @property
    def order(self) -> torch.Tensor:
        """The positions `[P]` of a row's trainable entries, in the order of the passes."""
        return torch.cat([each.lines.flatten() for each in self.layers if each.lines is not None])

    @property
    def columns(self) -> int:
        """How many floats of im2col columns an example needs, in the forward and the backward pass."""
        forms = [each.form for each in self.layers if isinstance(each.layer, nn.Conv1d | nn.Conv2d)]
        back = [math.prod(form.size) * math.prod(form.kernel) * form.outputs for form in forms[1:]]
        return sum(form.columns for form in forms) + max(back, default=0)


def treats_alike(rule: LocalRule) -> bool:
    """Whether a rule treats all entries of a row alike, so that their order does not matter, as ours do."""
    return all(getattr(type(rule), name).__module__.startswith("fedexp.") for name in STEPS)


def planned(network: nn.Module, layout: Layout, shape: Shape) -> LayerPlan | None:
    """Plans the passes of a network for examples of this shape; None unless it is a chain of known layers."""
    chain = pooled_first(links(network, lowered=True) or [])
    if not chain:
        return None
    found = list(_walked(chain, layout, shape))
    if len(found) < len(chain) or len(found[-1].shape) != 1:
        return None
    plan = LayerPlan(tuple(found), lowers(network))
    with_entries = [each.lines for each in found if each.lines is not None]
    whole = with_entries and torch.equal(plan.order.sort().values, torch.arange(layout.parameters))
    return plan if whole else None


def _walked(chain: list[Link], layout: Layout, shape: Shape) -> Iterator[Planned]:
    """Yields every layer with its input shape, up to the first unsupported layer."""
    begins = dict(zip(layout.names, torch.tensor([0, *layout.sizes]).cumsum(0).tolist(), strict=False))
    lying: Shape | None = None  # the images that were flattened as they lie, channels last
    for place, (name, layer) in enumerate(chain):
        if not _known(layer, shape):
            return
        entries = {
            own: begins[f"{name}.{own}" if name else own] + torch.arange(entry.numel()).view(entry.shape)
            for own, entry in layer.named_parameters()
        }
        following = chain[place + 1][1] if place + 1 < len(chain) else None
        turned = type(layer) is nn.Flatten and type(following) is not nn.Linear
        yield Planned(name, layer, shape, _lines(entries, lying) if entries else None, turned)
        lying = shape if type(layer) is nn.Flatten and not turned and len(shape) > 1 else None
        shape = _after(layer, shape)


def _lines(entries: dict[str, torch.Tensor], lying: Shape | None) -> torch.Tensor:
    """Returns the positions of a layer's entries as a matrix `[O, I]`, channels last."""
    weight = entries["weight"]
    if weight.dim() == 1:  # of a normalising layer: the scales, and the shifts
        return torch.stack([weight, entries["bias"]])
    if lying is not None:
        weight = weight.view(len(weight), lying[0], -1)
    if weight.dim() > 2:
        weight = weight.movedim(1, -1).flatten(1)
    return torch.cat([weight, entries["bias"][:, None]], dim=1) if "bias" in entries else weight


def _after(layer: nn.Module, shape: Shape) -> Shape:
    """Returns the output shape of a layer by its input shape, on the meta device."""
    if isinstance(layer, SAME):
        return shape
    nothing = torch.empty((2, *shape), device="meta", dtype=torch.float32)
    return tuple(type(layer).forward(copy.deepcopy(layer).to("meta", torch.float32), nothing).shape[1:])


def _known(layer: nn.Module, shape: Shape) -> bool:
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
    if kind is OneChannel or kind is nn.Linear:
        return dims == 1
    return kind in (nn.ReLU, nn.Tanh, nn.Identity)
