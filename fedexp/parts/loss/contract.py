"""The contract of losses: what every example costs, given what a model says of it and what is right.

Legend: B batch, K classes. Outputs are `[B, *facts.outputs]`: `[B, K]`, or `[B, L, K]` where tokens are predicted.
"""

from abc import abstractmethod
from typing import ClassVar

import torch

from fedexp.core.errors import ConfigError
from fedexp.core.part import Part, describe_choice
from fedexp.parts.dataset.contract import TARGET_NAMES, Facts, Targets

SUITS: dict[Targets, str] = {"class": "cross_entropy", "labels": "bce", "numbers": "mse", "tokens": "next_token"}


class Loss(Part):
    """What an example costs. Clients descend the mean over a batch, in which each example counts alike.

    An example's cost depends on nothing but the example: private training clips the gradient of each, and both engines
    cut and pad batches.
    """

    takes: ClassVar[tuple[Targets, ...]]  # the kinds of targets that it can be asked about
    is_log_likelihood: ClassVar[bool] = False  # whether `evaluation_losses` are -log p of the class, p by a softmax
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)  # what `evaluation.metrics=null` measures; the first is the main

    def refuse(self, facts: Facts) -> None:
        """Raises ConfigError where the loss does not support the targets of the dataset."""
        if facts.targets not in self.takes:
            wanted = " or ".join(TARGET_NAMES[kind] for kind in self.takes)
            raise ConfigError(
                f"{describe_choice('loss', self)} needs a dataset whose targets are {wanted}, "
                f"but those of this one are {TARGET_NAMES[facts.targets]}; use loss={SUITS[facts.targets]}"
            )

    @abstractmethod
    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The training loss of every example, `[B]`, given `outputs [B, *facts.outputs]` and `targets [B, ...]`."""
        raise NotImplementedError

    def mean(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The mean over a batch, a scalar; an option may know a faster way."""
        return self.per_example(outputs, targets).mean()

    def grad(self, outputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The mean and its gradient `[B, *facts.outputs]`; None, as here, where autograd computes them.

        Asked only of the class that defines it: a subclass may cost something else.
        """
        return None

    def grads(
        self, outputs: torch.Tensor, targets: torch.Tensor, share: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """As `grad` for R batches at once: costs `[R]`, gradients `[R, B, *facts.outputs]`; None: autograd finds them.

        A batch costs the sum of what its examples cost, each times its `share [R, B]`. Asked only of the class that
        defines it.
        """
        return None

    def evaluation_losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The loss of every example in evaluation, `[B]`: as in training, without terms such as smoothing."""
        return self.per_example(outputs, targets)

    def total(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sum of `evaluation_losses`, a scalar in float64; an option may know a faster way."""
        return self.evaluation_losses(outputs, targets).double().sum()
