"""What a kind of layer is: which settings its passes support, and all of its passes.

Kinds are told in the modules of `kinds`, where `registry` finds them. Legend: G rows, B examples, C channels, F
features, O x I a layer's entries as lines, one an output, the bias last.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from fedexp.training.layers.example_gradients import GradientRule
from fedexp.training.layers.layer_pass import BatchedContext, LayerPass, ManualContext
from fedexp.training.layers.sequential import full_name

Shape = tuple[int, ...]  # of one example: [C, H, W], [C, W] or [F]
Entries = dict[str, torch.Tensor]  # weights and buffers of one layer, by name


@dataclass(frozen=True)
class Activations:
    """The values between two layers: `shared [B, ...]`, `channels [B, G * C, ...]` or `stacked [G, B, F]`."""

    x: torch.Tensor
    form: str = "shared"

    def channels(self, rows: int) -> torch.Tensor:
        """Returns the values of shared or channels form in channels form, `[B, rows C, ...]`."""
        return self.x.repeat(1, rows, *[1] * (self.x.dim() - 2)) if self.form == "shared" else self.x


ManualBuilder = Callable[[Any, ManualContext], LayerPass]  # of the pass of one row, from a layer
Inference = Callable[[torch.Tensor], torch.Tensor]  # [B, *shape] to [B, *output shape]
Evaluator = Callable[[Any, Entries, Activations, int], Activations]  # entries [G, *shape], and G


def with_bias(lines: torch.Tensor, entries: Entries) -> torch.Tensor:
    """Returns the weights `lines [O, I]` of a layer with its bias behind them, `[O, I + 1]`, if it has one."""
    return torch.cat([lines, entries["bias"][:, None]], dim=1) if "bias" in entries else lines


def evaluate_as_is(layer: nn.Module, _entries: Entries, flow: Activations, _rows: int) -> Activations:
    """Evaluates a layer without entries that treats each channel separately; dropout does nothing in eval mode."""
    return Activations(layer(flow.x), flow.form)


@dataclass(frozen=True, kw_only=True)
class LayerKind:
    """A kind of layer with its passes. What it does not support is left to autograd, to vmap, to one model at a time.

    Args:
        types: the layers, exactly these: a subclass may do anything.
        manual: builds the pass of one row for a layer.
        manual_with_next: chooses what builds the pass of one row for a layer together with the next one, if it gains.
        batched: builds the pass of several rows.
        supports: whether the passes do what a layer does with its settings, for examples of a shape.
        output_shape: the shape of an example's output, given that of its input.
        entry_lines: arranges the positions of a layer's entries in a row as lines `[O, I]`, in the order of the batched
            pass; the second argument is the shape of the images that a layer before it flattened, else None.
        scratch_floats: what an example takes beside its values in the batched forward and backward pass.
        evaluator: the function that evaluates such a layer of several models side by side, if there is one.
        inference: chooses what computes a layer without gradients, given the layer behind it, if not the layer itself.
        gradient_rule: the function that computes its per-example gradients, if there is one.
        in_bfloat16: whether autocast has it compute in bfloat16.
        flattens: whether it flattens images.
        reads_any_order: whether what flattens may put the channels last in front of it.
        commutes_with: layers behind which it stands but which it may as well precede, with less work.
    """

    types: tuple[type[nn.Module], ...]
    manual: ManualBuilder
    batched: Callable[["PlannedLayer", BatchedContext], LayerPass]
    manual_with_next: Callable[["PlannedLayer", "PlannedLayer"], ManualBuilder | None] = lambda _layer, _next: None
    supports: Callable[[Any, Shape], bool] = lambda _layer, _shape: True
    output_shape: Callable[[Any, Shape], Shape] = lambda _layer, shape: shape
    entry_lines: Callable[[Entries, Shape | None], torch.Tensor] | None = None
    scratch_floats: Callable[[Any, Shape], tuple[int, int]] = lambda _layer, _shape: (0, 0)
    evaluator: Callable[[Any], Evaluator | None] = lambda _layer: None
    inference: Callable[[Any, nn.Module | None], Inference | None] = lambda _layer, _next: None
    gradient_rule: Callable[[Any], GradientRule | None] = lambda _layer: None
    in_bfloat16: bool = False
    flattens: bool = False
    reads_any_order: bool = False
    commutes_with: tuple[type[nn.Module], ...] = ()


@dataclass(frozen=True)
class PlannedLayer:
    """A layer of a chain with its kind and its input's shape.

    For batched passes, too, the positions of its entries in a row, `[O, I]`, if it has any, and, of a layer that
    flattens, whether it puts the channels first, as PyTorch does.
    """

    name: str
    layer: Any  # a module of one of the kind's types
    kind: LayerKind
    shape: Shape
    entry_positions: torch.Tensor | None = None
    channels_first: bool = True

    def full_name(self, entry: str) -> str:
        """Returns the name that an entry of the layer has in the network."""
        return full_name(self.name, entry)
