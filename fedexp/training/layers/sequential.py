"""Sequential networks: each layer's output goes into the next layer, and nowhere else."""

from collections.abc import Iterator

from torch import nn

from fedexp.training.client.precision import computes_in_bf16

NamedLayer = tuple[str, nn.Module]
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
SEQUENTIAL_METHODS = ("forward", "__call__", "__iter__")  # who defines one of them anew may do anything


def layer_chain(network: nn.Module, *, allow_bf16: bool = False) -> list[NamedLayer] | None:
    """The layers of a network by name, in the order in which they are called; None if it is no chain.

    Layers inside a `Sequential` stand in its place; what is not one is a single layer. Where a layer or an entry has
    hooks, a layer has a `forward` or `train` of its own, or an entry serves two layers, the layers do not say what the
    network does: None. With `allow_bf16` it may compute in bfloat16 as a whole, and whoever asks has the layers do so.
    """
    overrides = [
        (layer, name) for layer in network.modules() for name in (*HOOKS, "forward", "train") if vars(layer).get(name)
    ]
    if overrides and not (allow_bf16 and overrides == [(network, "forward")] and computes_in_bf16(network)):
        return None
    if any(type(layer).train is not nn.Module.train for layer in network.modules()):
        return None
    entries = [entry for _, entry in network.named_parameters(remove_duplicate=False)]
    if len(set(map(id, entries))) < len(entries) or any(entry._backward_hooks for entry in entries):
        return None
    return list(flatten_sequential("", network))


def full_name(prefix: str, name: str) -> str:
    """Returns the name in the network of what a layer named `prefix` calls `name`; the network itself is ""."""
    return f"{prefix}.{name}" if prefix else name


def flatten_sequential(name: str, layer: nn.Module) -> Iterator[NamedLayer]:
    """Yields the layers inside a `Sequential` of this name in order, and what is none as it is."""
    is_unchanged = all(getattr(type(layer), name, None) is getattr(nn.Sequential, name) for name in SEQUENTIAL_METHODS)
    if not isinstance(layer, nn.Sequential) or not is_unchanged:
        yield name, layer
        return
    for child_name, child in layer._modules.items():  # named_children would leave out the second turn of a layer
        assert child is not None
        yield from flatten_sequential(full_name(name, child_name), child)
