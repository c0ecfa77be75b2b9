"""Checks by trying whether clients can share a forward pass through a network under vmap."""

import torch
from torch import nn

from fedexp.core.torch_generator import seed_torch
from fedexp.parts.layers import BatchNorm
from fedexp.training.client.keyed_random import KeyedRandom
from fedexp.training.client.parameter_views import training_mode


def vmap_obstacle(network: nn.Module, inputs: torch.Tensor) -> str | None:
    """Returns why clients cannot share a pass, tried on `inputs [B, ...]`; None if no reason is found."""
    batch_norm_buffers = {
        id(entry) for layer in network.modules() if isinstance(layer, BatchNorm) for entry in layer.buffers()
    }
    saved_buffers = {name: entry.clone() for name, entry in network.named_buffers() if entry.is_floating_point()}
    keyed_random, seeds = KeyedRandom(), torch.zeros(2, dtype=torch.int32, device=inputs.device)
    with seed_torch(0, inputs.device), training_mode(network):
        before = torch.get_rng_state()
        with torch.no_grad(), keyed_random.begin(seeds, seeds[0]):
            network(inputs)
        if not torch.equal(before, torch.get_rng_state()):
            return "it draws other random numbers than those of dropout, rand and randn"
        for name, entry in network.named_buffers():
            if (
                id(entry) not in batch_norm_buffers
                and name in saved_buffers
                and not torch.equal(entry, saved_buffers[name])
            ):
                layer = network.get_submodule(name.rpartition(".")[0])
                return (
                    f"{type(layer).__name__} moves its buffer {name} in training (for batch normalisation of images "
                    "take fedexp.parts.BatchNorm)"
                )
    return None
