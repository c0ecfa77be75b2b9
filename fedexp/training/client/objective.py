"""The objective of local training: the loss as the local rule changes it.

Legend: B batch, D entries of a row, M reference models.
"""

import copy
from collections.abc import Callable, Sequence
from itertools import chain

import torch
from torch import nn
from torch.func import functional_call, vmap

from fedexp.core.errors import ConfigError
from fedexp.core.fields import resembles, type_and_shape
from fedexp.core.part import describe_choice
from fedexp.core.values import Layout
from fedexp.parts.layers import feature_layer
from fedexp.parts.local.contract import LocalRule, ModelOutputs
from fedexp.parts.loss.contract import Loss

Losses = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Objective:
    """The cost of examples under a loss and a local rule, given a network's outputs."""

    def __init__(self, loss: Loss, rule: LocalRule, network: nn.Module) -> None:
        self.loss, self.rule = loss, rule
        self.has_batch_cost = type(rule).cost_of_batch is not LocalRule.cost_of_batch
        self.is_loss_alone = type(rule).cost is LocalRule.cost and not self.has_batch_cost
        self.loss_has_grad = "grad" in vars(type(loss))
        self.loss_has_grads = "grads" in vars(type(loss))
        self.feature_recorder = None if self.is_loss_alone else FeatureRecorder(network)

    def per_example(
        self,
        outputs: torch.Tensor,
        targets: torch.Tensor,
        reference_outputs: Sequence[ModelOutputs] = (),
        counts: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The cost of every example, `[B]`, given `outputs [B, *facts.outputs]` and `targets [B, ...]`.

        `reference_outputs [M]` is what the models that the rule compares with say of the same examples, `counts [K]`
        how many examples of each class the client holds, `mask [B]` which places of the batch hold an example (None:
        all). What the batch costs as a whole is added to each, so that it is in their mean.

        Raises:
            ConfigError: the loss or the rule returns something else.
        """
        if self.feature_recorder is None:
            return example_losses(self.loss, outputs, targets)
        own_outputs = ModelOutputs(outputs, self.feature_recorder.pop_features(outputs))
        costs = self.rule.cost(self.loss, own_outputs, tuple(reference_outputs), targets, counts)
        costs = check_costs(f"{describe_choice('local', self.rule)}: cost", costs, outputs)
        if not self.has_batch_cost:
            return costs
        share = costs.new_ones(costs.shape) if mask is None else mask.to(costs.dtype)
        batch_cost = self.rule.cost_of_batch(own_outputs, share / share.sum().clamp(min=1))
        return costs if batch_cost is None else costs + batch_cost

    def mean(
        self,
        outputs: torch.Tensor,
        targets: torch.Tensor,
        reference_outputs: Sequence[ModelOutputs] = (),
        counts: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Returns the mean cost of a batch, a scalar; uses the loss's own faster mean where it has one."""
        if self.is_loss_alone and type(self.loss).mean is not Loss.mean:
            return self.loss.mean(outputs, targets)
        return self.per_example(outputs, targets, reference_outputs, counts).mean()

    def grad(self, outputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the mean cost of a batch and its gradient at `outputs [B, ...]`, both detached.

        Only where the rule makes nothing else of the loss (`is_loss_alone`).
        """
        loss_and_grad = self.loss.grad(outputs, targets) if self.loss_has_grad else None
        if loss_and_grad is not None:
            return loss_and_grad
        with torch.enable_grad():
            leaf = outputs.detach().requires_grad_()
            loss = self.mean(leaf.clone(), targets)  # a loss may change what it is given
            return loss.detach(), torch.autograd.grad(loss, leaf)[0]

    def grads(
        self, outputs: torch.Tensor, targets: torch.Tensor, share: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns costs `[R]` of several rows and their gradients at `outputs [R, B, ...]`, all detached.

        `share [R, B]` is the weight of every example in its row's mean, 0 where there is none.
        """
        losses_and_grads = self.loss.grads(outputs, targets, share) if self.loss_has_grads else None
        if losses_and_grads is not None:
            return losses_and_grads
        with torch.enable_grad():
            leaf = outputs.detach().requires_grad_()
            costs = vmap(self.per_example, randomness="different")(leaf.clone(), targets) * share
            losses = torch.where(share > 0, costs, 0.0).sum(dim=1)
            return losses.detach(), torch.autograd.grad(losses.sum(), leaf)[0]


def example_losses(loss: Loss, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The loss of every example, `[B]`; raises ConfigError if it returns something else."""
    return check_costs(f"{describe_choice('loss', loss)}: per_example", loss.per_example(outputs, targets), outputs)


def check_costs(subject: str, costs: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
    """Returns costs `[B]` for `outputs [B, ...]`; raises ConfigError if they are not one number an example."""
    if resembles(costs, outputs, outputs.shape[:1]):
        return costs
    raise ConfigError(
        f"{subject} must return a number for every example, {outputs.dtype} {[len(outputs)]}, got "
        f"{type_and_shape(costs)}"
    )


class FeatureRecorder:
    """Records the features that a network has extracted: what its `feature_layer` is given."""

    def __init__(self, network: nn.Module) -> None:
        self.features: torch.Tensor | None = None
        if (layer := feature_layer(network)) is not None:
            layer.register_forward_pre_hook(self._record)

    def pop_features(self, outputs: torch.Tensor) -> torch.Tensor:
        """Returns and clears the features `[B, ...]` of the last forward pass; `outputs` without such a layer."""
        features, self.features = self.features, None
        return outputs if features is None else features

    def _record(self, _: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        self.features = inputs[0]


class ReferenceModels:
    """Outputs of reference models on a client's examples, for rules that compare models with the one in training.

    They answer in evaluation mode and without gradients: nothing is drawn, and their statistics stay as they are.
    """

    def __init__(self, network: nn.Module, layout: Layout) -> None:
        entries = {id(entry): entry for entry in chain(network.parameters(), network.buffers())}
        self.network = copy.deepcopy(network, entries).eval()  # its entries are not copied: rows stand for them
        self.layout = layout
        self.feature_recorder = FeatureRecorder(self.network)

    def evaluate(self, rows: torch.Tensor, inputs: torch.Tensor) -> tuple[ModelOutputs, ...]:
        """Returns the outputs of each of the models `rows [M, D]` for `inputs [B, *shape]`."""
        answers = []
        with torch.no_grad():
            for row in rows.unbind():
                outputs = functional_call(self.network, self.layout.views(row), (inputs,))
                answers.append(ModelOutputs(outputs, self.feature_recorder.pop_features(outputs)))
        return tuple(answers)
