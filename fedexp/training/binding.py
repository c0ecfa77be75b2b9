"""Networks whose entries are views of a flat row, and networks that are tried without moving their buffers."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from fedexp.core.values import Layout


def bind(network: nn.Module, layout: Layout, row: torch.Tensor) -> None:
    """Makes every entry of the network a view of `row [D]`: writing the row loads the network."""
    entries = dict(network.named_parameters()) | dict(network.named_buffers())
    for name, view in layout.views(row).items():
        entries[name].data = view


@contextmanager
def training_on(network: nn.Module) -> Iterator[None]:
    """Puts the network in training mode; its buffers are restored afterwards."""
    kept = [(entry, entry.clone()) for entry in network.buffers()]
    network.train()
    try:
        yield
    finally:
        with torch.no_grad():
            for entry, value in kept:
                entry.copy_(value)
