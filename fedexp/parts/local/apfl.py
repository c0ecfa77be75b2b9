"""APFL's clients (Deng et al. 2020, arXiv 2003.13461, algorithm 1): each uses a mixture of two models.

A participant that received w trains it as in FedAvg, and on the same batches its own v through the mixture
u = alpha v + (1 - alpha) w: v <- v - lr alpha grad F_k(u), both from the values before the step. With `learn_alpha`
its alpha moves, too: alpha <- alpha - lr <v - w, grad F_k(u)>, kept in [0, 1]. v begins as the first
model. v and alpha never leave the client, which uses u; one that was never asked uses the global model. alpha = 0 is
FedAvg's local model, alpha = 1 a model trained alone.

These steps are those of momentum 0. With `local.momentum` v, and alpha where it moves, have a velocity as w has.

Deviation: the paper moves alpha once a round, here it moves in every step. A co-author's program (FedTorch, ab8068d)
steps w first, mixes the two models' answers instead of their entries, and adds 0.02 alpha to alpha's gradient. The
simulation keeps two rows for every client that was ever selected. A training that is not finite leaves them as they
were.
"""

from typing import Annotated

import torch

from fedexp.parts import Facts, Fraction, Layout, Model, select_rows
from fedexp.parts.local.heavy_ball import HeavyBall
from fedexp.parts.local.paired_model import PairedCompanion, refuse_pairs


class APFL(HeavyBall):
    """SGD, and a companion that is mixed with it."""

    keeps_rows = True

    alpha: Annotated[float, Fraction] = 0.5
    learn_alpha: bool = False

    @property
    def companion(self) -> "APFLCompanion":
        return self.settings_as(APFLCompanion)

    def refuse(self, model: Model, facts: Facts) -> None:
        refuse_pairs(self, model, facts)


class APFLCompanion(PairedCompanion):
    """The private entries are alpha, then v."""

    alpha: Annotated[float, Fraction] = 0.5
    learn_alpha: bool = False

    def first_private(self, first: torch.Tensor, layout: Layout) -> torch.Tensor:
        return torch.cat([first.new_full((*first.shape[:-1], 1), self.alpha), first], dim=-1)

    def combine(self, private: torch.Tensor, shared: torch.Tensor, layout: Layout) -> torch.Tensor:
        alpha, v = private[..., :1], private[..., 1:]
        return alpha * v + (1 - alpha) * shared

    def direction(self, grad: torch.Tensor, w: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        steps = super().direction(grad, w, anchor)
        return torch.cat([grad[..., :1], steps[..., 1:]], dim=-1) if self.weight_decay else steps  # alpha never decays

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        before = w[..., :1].clone()
        super().update(w, grad, slots, step, active)
        alpha = w[..., :1].clamp(0, 1) if self.learn_alpha else before
        w[..., :1] = alpha if active is None else select_rows(active, alpha, before)
