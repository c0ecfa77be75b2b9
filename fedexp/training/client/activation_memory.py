"""How much memory an example takes while a network is trained on it."""

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from fedexp.training.client.examples import Examples


def activation_floats(network: nn.Module, examples: Examples) -> int:
    """Estimates the floats that one example's forward and backward pass keep, from the layers' output sizes."""
    total = 0

    def count(module: nn.Module, inputs: object, output: object) -> None:  # noqa: ARG001
        nonlocal total
        total += sum(leaf.numel() for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor))

    hooks = [layer.register_forward_hook(count) for layer in network.modules() if not list(layer.children())]
    with torch.no_grad():
        network.eval()(examples.inputs(slice(0, 1)))
    for hook in hooks:
        hook.remove()
    return 3 * total + examples.x[0].numel()
