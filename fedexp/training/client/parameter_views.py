"""Networks whose entries are views of a flat row or arguments of a call; trying networks without moving buffers."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.func import functional_call

from fedexp.core.values import Layout


def view_parameters(network: nn.Module, layout: Layout, row: torch.Tensor) -> None:
    """Makes every entry of the network a view of `row [D]`: writing the row loads the network."""
    entries = dict(network.named_parameters()) | dict(network.named_buffers())
    for name, view in layout.views(row).items():
        entries[name].data = view


@contextmanager
def training_mode(network: nn.Module) -> Iterator[None]:
    """Puts the network in training mode; its buffers are restored afterwards."""
    saved_buffers = [(entry, entry.clone()) for entry in network.buffers()]
    network.train()
    try:
        yield
    finally:
        with torch.no_grad():
            for entry, value in saved_buffers:
                entry.copy_(value)


class FunctionalNetwork:
    """A network that is called with other entries than its own, also where several names stand for one entry.

    `functional_call` alone leaves a layer that has two names with the entries of the last call, and fails inside vmap.
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.names: dict[str, str] = {}  # of an entry as its layer holds it, and as a layout has it
        firsts: dict[int, str] = {}
        for prefix, layer in network.named_modules():
            for entry_name, entry in (layer._parameters | layer._buffers).items():
                if entry is not None:
                    name = f"{prefix}.{entry_name}" if prefix else entry_name
                    self.names[name] = firsts.setdefault(id(entry), name)

    def __call__(self, entries: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        """Returns the network's output for `x [B, ...]` with these `entries`, named as in a layout."""
        values = {name: entries[first] for name, first in self.names.items() if first in entries}
        return functional_call(self.network, values, (x,), tie_weights=False)
