"""A network whose entries are views of a flat row."""

import torch
from torch import nn

from fedexp.core.values import Layout


def bind(network: nn.Module, layout: Layout, row: torch.Tensor) -> None:
    """Makes every entry of the network a view of the row: writing the row loads the network."""
    entries = dict(network.named_parameters()) | dict(network.named_buffers())
    for name, view in layout.views(row).items():
        entries[name].data = view
