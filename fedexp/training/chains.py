"""Networks that are chains: what a layer gives goes into the next one, and nowhere else."""

from collections.abc import Iterator

from torch import nn

Link = tuple[str, nn.Module]
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def links(network: nn.Module) -> list[Link] | None:
    """The layers of a network by name, in the order in which they are called; None if it is no chain.

    Layers inside a `Sequential` stand in its place; what is not one is a single layer. Where a layer has hooks or a
    `forward` of its own, or an entry serves two layers, the layers do not say what the network does: None.
    """
    if any(vars(layer).get(name) for layer in network.modules() for name in (*HOOKS, "forward")):
        return None
    entries = [id(entry) for _, entry in network.named_parameters(remove_duplicate=False)]
    return list(_inside("", network)) if len(set(entries)) == len(entries) else None


def _inside(name: str, layer: nn.Module) -> Iterator[Link]:
    if not isinstance(layer, nn.Sequential) or type(layer).forward is not nn.Sequential.forward:
        yield name, layer
        return
    for own, inner in layer._modules.items():  # named_children would leave out the second turn of a layer
        assert inner is not None
        yield from _inside(f"{name}.{own}" if name else own, inner)
