"""The objective of local training: the loss as the local rule changes it. Legend: B batch, M reference models."""

from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.func import vmap

from fedexp.core.errors import ConfigError
from fedexp.core.fields import brief, resembles
from fedexp.core.part import named
from fedexp.parts.local.contract import LocalRule, Seen
from fedexp.parts.loss.contract import Loss

Losses = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Objective:
    """The cost of examples under a loss and a local rule, given a network's outputs."""

    def __init__(self, loss: Loss, rule: LocalRule, network: nn.Module) -> None:
        self.loss, self.rule = loss, rule
        self.plain = type(rule).cost is LocalRule.cost
        self.sloped = "slope" in vars(type(loss))
        self.stacked = "slopes" in vars(type(loss))
        self.noted = None if self.plain else LastInput(network)

    def each(
        self,
        outputs: torch.Tensor,
        targets: torch.Tensor,
        others: Sequence[Seen] = (),
        counts: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The cost of every example, `[B]`, given `outputs [B, *facts.outputs]` and `targets [B, ...]`.

        `others [M]` is what the models that the rule compares with say of the same examples, `counts [K]` how many
        examples of each class the client holds.

        Raises:
            ConfigError: the loss or the rule returns something else.
        """
        if self.noted is None:
            return loss_of_each(self.loss, outputs, targets)
        mine = Seen(outputs, self.noted.input(outputs))
        each = self.rule.cost(self.loss, mine, tuple(others), targets, counts)
        return believed(f"{named('local', self.rule)}: cost", each, outputs)

    def mean(
        self,
        outputs: torch.Tensor,
        targets: torch.Tensor,
        others: Sequence[Seen] = (),
        counts: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Returns the mean cost of a batch, a scalar; uses the loss's own faster mean where it has one."""
        if self.plain and type(self.loss).mean is not Loss.mean:
            return self.loss.mean(outputs, targets)
        return self.each(outputs, targets, others, counts).mean()

    def slope(self, outputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the mean cost of a batch and its gradient at `outputs [B, ...]`, both detached.

        Only where the rule makes nothing else of the loss (`plain`).
        """
        found = self.loss.slope(outputs, targets) if self.sloped else None
        if found is not None:
            return found
        with torch.enable_grad():
            leaf = outputs.detach().requires_grad_()
            loss = self.mean(leaf.clone(), targets)  # a loss may change what it is given
            return loss.detach(), torch.autograd.grad(loss, leaf)[0]

    def slopes(
        self, outputs: torch.Tensor, targets: torch.Tensor, share: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns costs `[R]` of several rows and their gradients at `outputs [R, B, ...]`, all detached.

        `share [R, B]` is the weight of every example in its row's mean, 0 where there is none.
        """
        found = self.loss.slopes(outputs, targets, share) if self.stacked else None
        if found is not None:
            return found
        with torch.enable_grad():
            leaf = outputs.detach().requires_grad_()
            each = vmap(self.each, randomness="different")(leaf.clone(), targets) * share
            losses = torch.where(share > 0, each, 0.0).sum(dim=1)
            return losses.detach(), torch.autograd.grad(losses.sum(), leaf)[0]


def loss_of_each(loss: Loss, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The loss of every example, `[B]`; raises ConfigError if it returns something else."""
    return believed(f"{named('loss', loss)}: each", loss.each(outputs, targets), outputs)


def believed(who: str, each: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
    """Returns costs `[B]` for `outputs [B, ...]`; raises ConfigError if they are not one number an example."""
    if resembles(each, outputs, outputs.shape[:1]):
        return each
    raise ConfigError(
        f"{who} must return a number for every example, {outputs.dtype} {[len(outputs)]}, got {brief(each)}"
    )


class LastInput:
    """Records the input of a network's last linear layer: the features that the network has extracted."""

    def __init__(self, network: nn.Module) -> None:
        self.given: torch.Tensor | None = None
        layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
        if layers:
            layers[-1].register_forward_pre_hook(self._note)

    def input(self, outputs: torch.Tensor) -> torch.Tensor:
        """Returns and clears the features `[B, ...]` of the last forward pass; `outputs` without a linear layer."""
        given, self.given = self.given, None
        return outputs if given is None else given

    def _note(self, _: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        self.given = inputs[0]
