"""The running statistics of batch normalisation among the buffers of a row.

Legend: B batch, S float buffers of a network.
"""

import torch
from torch import nn

from fedexp.core.device_arrays import to_device
from fedexp.core.values import Layout
from fedexp.parts.layers import BatchNorm


class NormStatistics:
    """Tells a network's layers of batch normalisation which examples there are, and gathers what they update."""

    def __init__(self, network: nn.Module, layout: Layout, device: torch.device) -> None:
        self.layers = [layer for layer in network.modules() if isinstance(layer, BatchNorm)]
        names = {id(entry): name for name, entry in network.named_buffers()}
        statistics = [names[id(entry)] for layer in self.layers for entry in layer.buffers()]
        self.has_all = len(statistics) == len(layout.names) - layout.trainable
        self.columns = to_device(layout.columns(statistics) - layout.parameters, device)

    def set_mask(self, mask: torch.Tensor) -> None:
        """Marks the places `mask [B]` of the batch that hold an example."""
        for layer in self.layers:
            layer.mask = mask

    def new_buffers(self, buffers: torch.Tensor) -> torch.Tensor:
        """The buffers `[S]` after a forward pass, given those before; others than the statistics stay."""
        updated = [entry for layer in self.layers for entry in layer.updated or ()]
        if not updated:
            return buffers
        statistics = torch.cat(updated)
        return statistics if self.has_all else buffers.index_copy(0, self.columns, statistics)
