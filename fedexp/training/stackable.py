"""Checks by trying whether clients can share a forward pass through a network under vmap."""

import torch
from torch import nn

from fedexp.core.torch_generator import begun_at
from fedexp.parts.layers import BatchNorm
from fedexp.training.binding import training_on
from fedexp.training.draws import Draws


def unstackable(network: nn.Module, inputs: torch.Tensor) -> str | None:
    """Returns why clients cannot share a pass, tried on `inputs [B, ...]`; None if no reason is found."""
    ours = {id(entry) for layer in network.modules() if isinstance(layer, BatchNorm) for entry in layer.buffers()}
    kept = {name: entry.clone() for name, entry in network.named_buffers() if entry.is_floating_point()}
    draws, seeds = Draws(), torch.zeros(2, dtype=torch.int32, device=inputs.device)
    with begun_at(0, inputs.device), training_on(network):
        before = torch.get_rng_state()
        with torch.no_grad(), draws.begin(seeds, seeds[0]):
            network(inputs)
        if not torch.equal(before, torch.get_rng_state()):
            return "it draws other random numbers than those of dropout, rand and randn"
        for name, entry in network.named_buffers():
            if id(entry) not in ours and name in kept and not torch.equal(entry, kept[name]):
                layer = network.get_submodule(name.rpartition(".")[0])
                return (
                    f"{type(layer).__name__} moves its buffer {name} in training (for batch normalisation of images "
                    "take fedexp.parts.BatchNorm)"
                )
    return None
