"""Sequential networks: each layer's output goes into the next layer, and nowhere else."""

from collections.abc import Iterator

from torch import nn

from fedexp.training.precision import lowers

Link = tuple[str, nn.Module]
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
OWN = ("forward", "__call__", "__iter__")  # who defines one of them anew may do anything


def links(network: nn.Module, *, lowered: bool = False) -> list[Link] | None:
    """The layers of a network by name, in the order in which they are called; None if it is no chain.

    Layers inside a `Sequential` stand in its place; what is not one is a single layer. Where a layer or an entry has
    hooks, a layer has a `forward` or `train` of its own, or an entry serves two layers, the layers do not say what the
    network does: None. With `lowered` it may compute in bfloat16 as a whole, and whoever asks has the layers do so.
    """
    own = [
        (layer, name) for layer in network.modules() for name in (*HOOKS, "forward", "train") if vars(layer).get(name)
    ]
    if own and not (lowered and own == [(network, "forward")] and lowers(network)):
        return None
    if any(type(layer).train is not nn.Module.train for layer in network.modules()):
        return None
    entries = [entry for _, entry in network.named_parameters(remove_duplicate=False)]
    if len(set(map(id, entries))) < len(entries) or any(entry._backward_hooks for entry in entries):
        return None
    return list(_inside("", network))


def _inside(name: str, layer: nn.Module) -> Iterator[Link]:
    plain = all(getattr(type(layer), name, None) is getattr(nn.Sequential, name) for name in OWN)
    if not isinstance(layer, nn.Sequential) or not plain:
        yield name, layer
        return
    for own, inner in layer._modules.items():  # named_children would leave out the second turn of a layer
        assert inner is not None
        yield from _inside(f"{name}.{own}" if name else own, inner)
