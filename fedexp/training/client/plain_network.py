"""Checks that a network consists of plain modules whose entries fit in a row; ties parameters that share memory.

A row holds every entry once. What PyTorch keeps in other ways is refused: parameters without a shape or without
values, programs that were compiled from a module.
"""

from collections.abc import Iterator

import torch
from torch import nn

from fedexp.core.errors import ConfigError


def refuse_modules(subject: str, network: nn.Module) -> None:
    """Raises ConfigError unless all modules of a network are plain, and their entries have shapes and values."""
    for name, layer in iterate_modules(network):
        label = f"{name} ({type(layer).__name__})" if name else type(layer).__name__
        if "_orig_mod" in vars(layer).get("_modules", {}):
            raise ConfigError(f"{subject}: {name or 'network'} must not be compiled; leave out torch.compile")
        if isinstance(layer, torch.jit.ScriptModule):
            raise ConfigError(
                f"{subject}: {name or 'network'} must not be compiled; leave out torch.jit.script or trace"
            )
        if "_modules" not in vars(layer):
            raise ConfigError(f"{subject}: {label} must call super().__init__() first in its __init__, but does not")
        for entry_name, entry in [*layer._parameters.items(), *layer._buffers.items()]:
            _refuse_entry(subject, f"{name}.{entry_name}".lstrip("."), entry)


def _refuse_entry(subject: str, name: str, entry: object) -> None:
    if entry is None:
        return
    if not isinstance(entry, torch.Tensor):
        raise ConfigError(f"{subject}: {name} must be a tensor, got {type(entry).__name__}; set it by assignment")
    if nn.parameter.is_lazy(entry):
        raise ConfigError(
            f"{subject}: {name} must have a shape before the first example, but is lazy; give the layer its sizes "
            "(model.factory is given shape and classes)"
        )
    if entry.is_meta:
        raise ConfigError(
            f"{subject}: {name} must have values, but lies on the device meta; build the network without it"
        )
    if entry.layout != torch.strided:
        raise ConfigError(f"{subject}: {name} must be dense, got {entry.layout}; use its to_dense()")


def iterate_modules(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yields the modules of a network by name, also of one whose constructor was not called."""
    stack, visited_ids = [("", network)], set()
    while stack:
        name, layer = stack.pop()
        if id(layer) in visited_ids:
            continue
        visited_ids.add(id(layer))
        yield name, layer
        if not isinstance(layer, torch.jit.ScriptModule):
            children = reversed(vars(layer).get("_modules", {}).items())
            stack += [
                (f"{name}.{child_name}".lstrip("."), child) for child_name, child in children if child is not None
            ]


def tie_shared(subject: str, network: nn.Module) -> None:
    """Makes parameters that share their memory one parameter: `a.weight.data = b.weight.data` as `a.weight = b.weight`.

    Raises:
        ConfigError: they share a part of it, or in another shape.
    """
    first, entry = "", torch.empty(0)
    for name, parameter in sorted(network.named_parameters(), key=lambda item: item[1].data_ptr()):
        if not entry.numel() or not parameter.numel() or parameter.data_ptr() >= _memory_end(entry):
            first, entry = name, parameter
            continue
        if (entry.data_ptr(), entry.shape, entry.stride()) != (
            parameter.data_ptr(),
            parameter.shape,
            parameter.stride(),
        ):
            raise ConfigError(
                f"{subject}: parameters {first} and {name} must not share a part of their memory, or in another shape; "
                "use one parameter in both places"
            )
        layer, _, attribute = name.rpartition(".")
        setattr(network.get_submodule(layer), attribute, entry)


def refuse_norms(subject: str, network: nn.Module) -> None:
    """Raises ConfigError if batch normalisation has no running statistics that travel with a model."""
    for name, layer in network.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            if layer.running_mean is None:
                raise ConfigError(
                    f"{subject}: {name} must have running statistics, got track_running_stats=False: an answer would "
                    "depend on the other examples of its batch; set track_running_stats=True, or take GroupNorm"
                )
            if layer.momentum is None:
                raise ConfigError(
                    f"{subject}: {name} must have a momentum, got None: an average over all steps would go from client "
                    "to client; set momentum=0.1"
                )


def refuse_entries(subject: str, network: nn.Module) -> None:
    """Raises ConfigError unless all parameters are finite trainable floats of the default dtype."""
    if not any(True for _ in network.parameters()):
        raise ConfigError(f"{subject}: network must have parameters to train, but has none")
    for name, entry in network.named_parameters():
        if entry.dtype != torch.get_default_dtype():
            raise ConfigError(f"{subject}: parameter {name} must be {torch.get_default_dtype()}, got {entry.dtype}")
        if not entry.requires_grad:
            raise ConfigError(
                f"{subject}: parameter {name} is frozen (requires_grad=False), but every parameter of a network is "
                "trained; make it a buffer: register_buffer"
            )
        if not entry.isfinite().all():
            raise ConfigError(f"{subject}: parameter {name} must begin with finite numbers, but some are not")


def refuse_first_values(subject: str, network: nn.Module, second_network: nn.Module) -> None:
    """Raises ConfigError unless two builds of a network have equal initial values and share no parameter."""
    second = dict(second_network.named_parameters())
    for name, entry in network.named_parameters():
        if entry is second.get(name):
            raise ConfigError(
                f"{subject}: network must make every parameter anew in each call, but {name} is the same one"
            )
        if name not in second or not torch.equal(entry, second[name]):
            raise ConfigError(
                f"{subject}: parameter {name} must begin with the same numbers in each call of network, but does not; "
                "draw them with torch, which a run seeds"
            )


def _memory_end(entry: torch.Tensor) -> int:
    """Returns the address behind the last byte of a tensor."""
    last = sum((size - 1) * stride for size, stride in zip(entry.shape, entry.stride(), strict=True))
    return entry.data_ptr() + (last + 1) * entry.element_size()
