"""The cross-entropy of one class an example, with label smoothing (Szegedy et al. 2016, arXiv 1512.00567, section 7).

An example of class y with log-probabilities l costs -w_y ((1 - s) l_y + s mean_k l_k), s being `label_smoothing` and w
the `class_weights`. A batch costs the mean over its examples. PyTorch divides by the sum of their weights instead, and
weighs the smoothed part class by class: there an example's cost depends on the others in its batch.

Models are measured without smoothing and weights, so that runs that differ in these can be compared.
"""

from typing import Annotated

import torch
from torch.nn import functional as F

from fedexp.parts import ConfigError, Facts, Loss, Range


class CrossEntropy(Loss):
    """The cross-entropy, with label smoothing and class weights if they are set."""

    takes = ("class",)
    is_log_likelihood = True

    label_smoothing: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    class_weights: tuple[Annotated[float, Range(0)], ...] | None = None

    def refuse(self, facts: Facts) -> None:
        super().refuse(facts)
        if self.class_weights is not None and len(self.class_weights) != facts.classes:
            raise ConfigError(
                f"loss.class_weights must have a weight for each of {facts.classes} classes, got "
                f"{len(self.class_weights)}"
            )

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        losses = F.cross_entropy(outputs, targets, reduction="none", label_smoothing=self.label_smoothing)
        return losses if self.class_weights is None else losses * self._weights(targets).to(losses.dtype)

    def mean(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self.class_weights is not None:
            return super().mean(outputs, targets)
        return F.cross_entropy(outputs, targets, label_smoothing=self.label_smoothing)

    def grad(self, outputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Calls the same kernels as autograd would."""
        if self.label_smoothing or self.class_weights is not None:
            return None
        aten, mean, ignored = torch.ops.aten, 1, -100
        log_probs = aten._log_softmax.default(outputs, 1, False)
        loss, weight = aten.nll_loss_forward.default(log_probs, targets, None, mean, ignored)
        grad_log_probs = aten.nll_loss_backward.default(
            torch.ones_like(loss), log_probs, targets, None, mean, ignored, weight
        )
        return loss, aten._log_softmax_backward_data.default(grad_log_probs, log_probs, 1, outputs.dtype)

    def grads(
        self, outputs: torch.Tensor, targets: torch.Tensor, share: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Uses four kernels: the cost is the product of the log-probabilities and of the gradient at them."""
        if self.label_smoothing or self.class_weights is not None:
            return None
        aten, none, ignored = torch.ops.aten, 0, -100
        log_probs = aten._log_softmax.default(outputs, 2, False)
        flat, total_weight = log_probs.flatten(0, 1), share.new_empty(())  # which is not read without a mean
        grad_log_probs = aten.nll_loss_backward.default(
            share.flatten(), flat, targets.flatten(), None, none, ignored, total_weight
        )
        grad_log_probs = grad_log_probs.view_as(log_probs)
        loss = torch.bmm(log_probs.flatten(1)[:, None], grad_log_probs.flatten(1)[:, :, None]).flatten()
        return loss, aten._log_softmax_backward_data.default(grad_log_probs, log_probs, 2, outputs.dtype)

    def evaluation_losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets, reduction="none")

    def total(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets, reduction="sum").double()

    def _weights(self, targets: torch.Tensor) -> torch.Tensor:
        """The weight of each of `targets [B]`, from plain numbers: a captured graph cannot copy a list to the GPU."""
        assert self.class_weights is not None
        terms = [weight * (targets == number) for number, weight in enumerate(self.class_weights)]
        return torch.stack(terms).sum(dim=0)
