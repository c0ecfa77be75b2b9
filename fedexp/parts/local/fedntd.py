"""FedNTD, not-true distillation (Lee et al. 2022, arXiv 2106.03097).

An example costs the loss plus beta times the divergence KL(p || q) of the softmax over all classes but its own: p of
the received model, q of the model in training, both of logits divided by a temperature. So a client learns its classes
and keeps what the global model knows of all others.

The paper and its authors' program take beta = 1 and temperature 1. The paper's equation has no factor temperature**2;
of the authors' program one version has it (57789c85) and another has not (043269e). The received model answers in
evaluation mode.
"""

from typing import Annotated, ClassVar

import numpy as np
import torch

from fedexp.parts import Context, Loss, Memory, ModelOutputs, Positive, Range
from fedexp.parts.local.heavy_ball import HeavyBall


def not_true_divergence(
    received: torch.Tensor, outputs: torch.Tensor, targets: torch.Tensor, temperature: float
) -> torch.Tensor:
    """KL `[B, ...]` of softmaxes without the class of `targets [B, ...]`, from `received [B, ..., K]` to `outputs`."""
    true = torch.arange(outputs.shape[-1], device=outputs.device) == targets.unsqueeze(-1)
    log_p, log_q = (
        (logits / temperature).masked_fill(true, -torch.inf).log_softmax(dim=-1).masked_fill(true, 0.0)
        for logits in (received, outputs)
    )
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1)


class FedNTD(HeavyBall):
    """SGD on the loss and the divergence from what the received model says of the other classes."""

    compares = ("received",)
    reads_class_targets = True

    adds_nothing_at: ClassVar = {"beta": 0.0}

    beta: Annotated[float, Range(0)] = 1.0
    temperature: Annotated[float, Positive] = 1.0

    def reference_models(self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context) -> torch.Tensor:
        return received.unsqueeze(0)

    def cost(
        self,
        loss: Loss,
        own_outputs: ModelOutputs,
        reference_outputs: tuple[ModelOutputs, ...],
        targets: torch.Tensor,
        counts: torch.Tensor | None,
    ) -> torch.Tensor:
        (received,) = reference_outputs
        term = not_true_divergence(received.outputs, own_outputs.outputs, targets, self.temperature)
        return loss.per_example(own_outputs.outputs, targets) + self.beta * term
