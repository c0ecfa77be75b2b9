"""Records the inputs and outputs of every layer, from which per-example gradients can be computed.

Legend: B examples.
"""

from collections import Counter
from functools import partial

import torch
from torch import nn

# Where a layer has one of these of its own, it is not what its type is.
ALTERED = ("forward", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks")


class ActivationTape:
    """The inputs and outputs of every layer that has parameters, in the order of the parameters.

    `is_complete` says whether the gradients of all entries follow from them. Where not, nothing is noted.
    """

    def __init__(self, network: nn.Module, example: torch.Tensor) -> None:
        """Tries the network on `example [1, ...]`, in batches of two and three: else an axis may have such a length.

        `shapes` are those of the layers' outputs.
        """
        self.layers = [layer for layer in network.modules() if layer._parameters]
        self.inputs: list[torch.Tensor] = []
        self.outputs: list[torch.Tensor] = []
        self.calls: list[int] = []
        self.shifts: list[torch.Tensor] = []  # added to the outputs; the loss is differentiated with respect to them
        altered = any(vars(layer).get(name) for layer in self.layers for name in ALTERED)
        hooks = [layer.register_forward_hook(partial(self._record, number)) for number, layer in enumerate(self.layers)]
        self.is_complete = not altered and all(self._try(network, example, examples) for examples in (2, 3))
        self.shapes = [tuple(output.shape[1:]) for output in self.outputs] if self.is_complete else []
        self.clear()
        if not self.is_complete:
            for hook in hooks:
                hook.remove()

    def clear(self) -> None:
        """Drops the record of the last forward pass."""
        for records in (self.inputs, self.outputs, self.calls, self.shifts):
            records.clear()

    def _record(
        self, number: int, _: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor
    ) -> torch.Tensor | None:
        self.calls.append(number)
        self.inputs.extend(inputs[:1])  # none where it is named in the call
        self.outputs.append(output)
        return output + self.shifts[number] if self.shifts else None

    def _try(self, network: nn.Module, example: torch.Tensor, examples: int) -> bool:
        """Records a batch of as many `examples`, each `example [1, ...]`; returns whether it covers all entries."""
        self.clear()
        with torch.enable_grad():
            answers = network.eval()(torch.cat([example] * examples))
        return self._covers_all_entries(network, answers, examples)

    def _covers_all_entries(self, network: nn.Module, answers: torch.Tensor, examples: int) -> bool:
        """Whether each layer was called once, in order, with all examples, and each entry was used once.

        Else an entry has gradients from elsewhere, too: tied weights, layers that are called again, weights that are
        used beside their layer. Outputs must not have been changed in place behind their layer.
        """
        entries = [entry for layer in self.layers for entry in layer._parameters.values() if entry is not None]
        usual = all({*layer._parameters} <= {"weight", "bias"} for layer in self.layers)  # else made of other entries
        in_order = self.calls == list(range(len(self.layers))) and len(self.inputs) == len(self.calls)
        if not (usual and in_order and list(map(id, entries)) == list(map(id, network.parameters()))):
            return False
        tensors = [*self.inputs, *self.outputs]
        per_example = all(
            isinstance(tensor, torch.Tensor) and tensor.dim() > 0 and len(tensor) == examples for tensor in tensors
        )
        return per_example and all(tensor._version == 0 for tensor in self.outputs) and is_used_once(entries, answers)


def is_used_once(entries: list[nn.Parameter], answers: torch.Tensor) -> bool:
    """Whether each entry enters the autograd graph of the answers (any shape) exactly once."""
    uses, visited_nodes, pending = Counter[int](), set(), [answers.grad_fn]
    while pending:
        for node, _ in getattr(pending.pop(), "next_functions", ()):
            if hasattr(node, "variable"):
                uses[id(node.variable)] += 1
            elif node is not None and node not in visited_nodes:
                visited_nodes.add(node)
                pending.append(node)
    return all(uses[id(entry)] == 1 for entry in entries)
