"""Batched forward and backward passes of networks that are chains of supported layers, for rows with their own entries.

The rows' entries lie in the order in which the passes want them, each layer's `[O, I]` together, and their gradients
beside them in the same order: no step moves them. All else is left to vmap. Legend: R rows, B batch, P trainable
entries, D entries of a row, O x I: a layer's entries as lines, one an output, the bias last.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import torch
from torch import nn

from fedexp.core.values import Layout
from fedexp.parts.local.contract import LocalRule
from fedexp.training.client.keyed_random import KeyedRandom
from fedexp.training.client.precision import computes_in_bf16
from fedexp.training.layers.bfloat16 import BatchedBfloat16, ToFloat32
from fedexp.training.layers.kind import PlannedLayer, Shape
from fedexp.training.layers.layer_pass import BatchedContext, ChainPass, LayerPass
from fedexp.training.layers.registry import plan_chain

STEP_METHODS = ("clip_gradient", "direction", "update", "pull", "fill")


@dataclass(frozen=True)
class LayerPlan:
    """The layers of a network in order, of rows in this layout; `bf16` says whether they multiply in bfloat16."""

    layers: tuple[PlannedLayer, ...]
    layout: Layout
    bf16: bool

    @property
    def order(self) -> torch.Tensor:
        """The positions `[P]` of a row's trainable entries, in the order of the passes."""
        positions = [planned.entry_positions for planned in self.layers if planned.entry_positions is not None]
        return torch.cat([torch.zeros(0, dtype=torch.int64), *(lines.flatten() for lines in positions)])

    @property
    def scratch_floats(self) -> int:
        """How many floats an example needs beside the layers' values, in the forward and the backward pass."""
        floats = [planned.kind.scratch_floats(planned.layer, planned.shape) for planned in self.layers]
        used = [pair for pair in floats if any(pair)]
        return sum(forward for forward, _ in used) + max((backward for _, backward in used[1:]), default=0)


def treats_entries_alike(rule: LocalRule) -> bool:
    """Whether a rule treats all entries of a row alike, so that their order does not matter, as ours do."""
    return all(getattr(type(rule), name).__module__.startswith("fedexp.") for name in STEP_METHODS)


def plan_layers(network: nn.Module, layout: Layout, shape: Shape) -> LayerPlan | None:
    """Plans the passes of a network for examples of this shape; None unless it is a chain of supported layers."""
    chain = plan_chain(network, shape, in_training=True)
    if chain is None or len(chain[-1].shape) != 1:
        return None
    plan = LayerPlan(tuple(_with_positions(chain, layout)), layout, computes_in_bf16(network))
    order = plan.order
    return plan if len(order) and torch.equal(order.sort().values, torch.arange(layout.parameters)) else None


def _with_positions(chain: list[PlannedLayer], layout: Layout) -> Iterator[PlannedLayer]:
    """Yields every layer with the positions of its entries."""
    begins = dict(zip(layout.names, torch.tensor([0, *layout.sizes]).cumsum(0).tolist(), strict=False))
    flattened: Shape | None = None  # the images that were flattened as they lie, channels last
    for planned, following in pairwise([*chain, None]):
        assert planned is not None
        positions = {
            name: begins[planned.full_name(name)] + torch.arange(entry.numel()).view(entry.shape)
            for name, entry in planned.layer.named_parameters()
        }
        lines = planned.kind.entry_lines(positions, flattened) if planned.kind.entry_lines else None
        as_stored = planned.kind.flattens and following is not None and following.kind.reads_any_order
        flattened = planned.shape if as_stored and len(planned.shape) > 1 else None
        yield replace(planned, entry_positions=lines, channels_first=not as_stored)


def build_passes(
    plan: LayerPlan,
    w: torch.Tensor,
    gradient: torch.Tensor,
    batch: int,
    memory_mb: float,
    keyed_random: KeyedRandom | None,
) -> ChainPass:
    """Builds the passes of rows `w [R, D]`, in the plan's order, and their `gradient [R, P]`.

    Dropout draws from `keyed_random`; `memory_mb` is what all rows may take.
    """
    layout = plan.layout
    names, sizes = (values[layout.trainable :] for values in (layout.names, layout.sizes))
    buffers = dict(zip(names, w[:, layout.parameters :].split(sizes, dim=1), strict=True))
    layers: list[LayerPass] = []
    begin, first = 0, None
    for planned in plan.layers:
        shape = (0, 0) if planned.entry_positions is None else tuple(planned.entry_positions.shape)
        columns = slice(begin, begin + shape[0] * shape[1])
        context = BatchedContext(
            entries=w[:, columns].view(len(w), *shape),
            grads=gradient[:, columns].view(len(w), *shape),
            buffers={name: buffers[planned.full_name(name)] for name, _ in planned.layer.named_buffers()},
            batch=batch,
            memory_mb=memory_mb,
            needs_input_grad=first is not None,
            keyed_random=keyed_random,
        )
        first = len(layers) if columns.stop > begin and first is None else first
        begin, make = columns.stop, partial(planned.kind.batched, planned)
        layers.append(BatchedBfloat16(context, make) if plan.bf16 and planned.kind.in_bfloat16 else make(context))
    assert first is not None
    layers += [ToFloat32()] if plan.bf16 else []
    for layer, following in reversed([*pairwise(layers)]):
        layer.output_buffer = following.input_buffer
    return ChainPass(layers, first)
