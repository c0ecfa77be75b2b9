"""Clients trained in plain PyTorch or by autograd, step by step, which rules are compared with."""

from typing import Any

import torch
from torch import nn
from worlds import first_round

from fedexp.parts import Loss, ModelOutputs
from fedexp.parts.local.sgd import SGD
from fedexp.simulation.world import World

# The gradient of the loss alone has formulas of its own, which round otherwise than the sum that autograd makes.
AUTOGRAD_SGD = ("local=sgd", "local._target_=plain_training.AutogradSGD")


class AutogradSGD(SGD):
    """SGD that takes its gradients as rules with a cost of their own do."""

    def cost(
        self,
        loss: Loss,
        own_outputs: ModelOutputs,
        reference_outputs: tuple[ModelOutputs, ...],
        targets: torch.Tensor,
        counts: torch.Tensor | None,
    ) -> torch.Tensor:
        return super().cost(loss, own_outputs, reference_outputs, targets, counts)


def plain_pytorch(world: World, row: int, frozen: list[tuple[str, ...]], **options: Any) -> torch.Tensor:
    """A client's training, step by step: `frozen` says of each step which entries do not move."""
    task = first_round(world)
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    network.load_state_dict(world.layout.views(world.first.flat.clone()))
    descend, batches = torch.optim.SGD(network.parameters(), **options), task.batches[row]
    bounds = zip(batches.bounds[:-1], batches.bounds[1:], strict=True)
    for names, (a, b) in zip(frozen, bounds, strict=True):
        index = torch.from_numpy(task.plan.shards[row][batches.order[a:b]])
        descend.zero_grad()
        nn.functional.cross_entropy(
            network(world.train.x[index].to(float_type(network))), world.train.y[index]
        ).backward()
        for name, entry in network.named_parameters():
            if name in names:
                entry.grad = None
        descend.step()
    return world.layout.flatten(network)


def float_type(network: nn.Module) -> torch.dtype:
    return next(network.parameters()).dtype
