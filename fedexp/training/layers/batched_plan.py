"""Which networks have batched passes, and in which order these want the entries of a row.

Legend: P trainable entries of a row, O x I: a layer's entries as lines, one an output, the bias last.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import nn

from fedexp.core.values import Layout
from fedexp.parts.local.contract import LocalRule
from fedexp.training.client.precision import computes_in_bf16
from fedexp.training.layers.kind import PlannedLayer, Shape
from fedexp.training.layers.registry import plan_chain

STEP_METHODS = ("clip_gradient", "direction", "update", "pull", "fill")


@dataclass(frozen=True)
class LayerPlan:
    """The layers of a network in order; `bf16` says whether they multiply in bfloat16."""

    layers: tuple[PlannedLayer, ...]
    bf16: bool = False

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
    plan = LayerPlan(tuple(_with_positions(chain, layout)), computes_in_bf16(network))
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
