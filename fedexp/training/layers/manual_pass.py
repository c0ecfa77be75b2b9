"""Manual forward and backward passes, without autograd, of networks that are chains of supported layers.

The gradient goes straight into a flat row. Everything else is left to autograd: other networks, unusual settings of
known layers, and subclasses of them, which may do anything.
"""

from collections import deque
from collections.abc import Iterator

import torch
from torch import nn

from fedexp.training.client.keyed_random import KeyedRandom
from fedexp.training.client.precision import computes_in_bf16
from fedexp.training.layers.bfloat16 import ManualBfloat16, ToFloat32
from fedexp.training.layers.kind import ManualBuilder, PlannedLayer, Shape
from fedexp.training.layers.layer_pass import ChainPass, LayerPass, ManualContext
from fedexp.training.layers.registry import plan_chain


def manual_pass(
    network: nn.Module, grads: dict[str, torch.Tensor], shape: Shape, keyed_random: KeyedRandom | None
) -> ChainPass | None:
    """Returns the manual passes of a network; None if one of its layers is not supported.

    The entries of the network must stay where they are; layers hold them detached, so that autograd records nothing of
    them. `grads` are the views (of any shape) that take their gradients, by name; examples have this shape; dropout is
    drawn from `keyed_random`.
    """
    bf16 = computes_in_bf16(network)
    layers: list[LayerPass] = []
    first: int | None = None
    for planned, make in _builders(plan_chain(network, shape, in_training=True) or []):
        entry_grads = {name: grads[planned.full_name(name)] for name, _ in planned.layer.named_parameters()}
        can_overwrite_input = bool(layers) and layers[-1].can_overwrite_output
        context = ManualContext(entry_grads, first is not None, can_overwrite_input, keyed_random)
        first = len(layers) if entry_grads and first is None else first
        layers.append(
            ManualBfloat16(planned.layer, context, make)
            if bf16 and planned.kind.in_bfloat16
            else make(planned.layer, context)
        )
    return None if first is None else ChainPass([*layers, *([ToFloat32()] if bf16 else [])], first)


def _builders(plan: list[PlannedLayer]) -> Iterator[tuple[PlannedLayer, ManualBuilder]]:
    """Yields each layer and what builds its pass; one that has a pass together with its predecessor is left out."""
    queue = deque(plan)
    while queue:
        planned = queue.popleft()
        with_next = planned.kind.manual_with_next(planned, queue[0]) if queue else None
        if with_next is not None:
            queue.popleft()
        yield planned, with_next or planned.kind.manual
