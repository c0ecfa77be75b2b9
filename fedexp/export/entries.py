"""Gives a network entries from elsewhere, also where layers have become wider than the model says."""

from collections.abc import Mapping

import torch
from torch import nn

from fedexp.core.errors import ConfigError

COUNTER = "num_batches_tracked"  # which PyTorch's batch normalisation has and a row of ours has not


def set_entries(network: nn.Module, entries: Mapping[str, torch.Tensor], subject: str) -> nn.Module:
    """Sets parameters and buffers (any shape) by name and returns the network; entries of wider layers replace those.

    Names that share one entry in the network need be given once.

    Raises:
        ConfigError: an entry is missing, unknown, of another type or number of dimensions; `subject` says whose.
    """
    saved = network.state_dict(keep_vars=True)
    current = dict(network.named_buffers(remove_duplicate=False)) | saved
    new_entries = {name: entry for name, entry in entries.items() if name in current or not name.endswith(COUNTER)}
    if unknown := sorted(set(new_entries) - set(current)):
        raise ConfigError(f"{subject} must fit the network, but has {unknown[0]}, which the network has not")
    shared = {id(current[name]) for name in new_entries}
    if missing := [name for name, entry in saved.items() if id(entry) not in shared and not name.endswith(COUNTER)]:
        raise ConfigError(f"{subject} must fit the network, but lacks {missing[0]}")
    for name, entry in new_entries.items():
        old = current[name]
        if entry.dtype != old.dtype or entry.dim() != old.dim():
            raise ConfigError(
                f"{subject} must hold {old.dtype} of {old.dim()} dimensions for {name}, got {entry.dtype} "
                f"{list(entry.shape)}"
            )
        if entry.shape == old.shape:
            old.data.copy_(entry)
        else:
            _replace(network, name, entry)
    return network.eval()


def _replace(network: nn.Module, name: str, entry: torch.Tensor) -> None:
    """Puts an entry of another shape into its layer, whose sizes follow."""
    owner_name, _, own_name = name.rpartition(".")
    layer = network.get_submodule(owner_name)
    is_parameter = own_name in layer._parameters
    setattr(layer, own_name, nn.Parameter(entry.clone()) if is_parameter else entry.clone())
    if own_name != "weight":
        return
    if isinstance(layer, nn.Linear):
        layer.out_features, layer.in_features = entry.shape
    elif isinstance(layer, nn.Conv1d | nn.Conv2d):
        layer.out_channels, layer.in_channels = entry.shape[0], entry.shape[1] * layer.groups
