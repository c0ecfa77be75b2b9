"""FedRoD's clients (Chen & Chao 2022, arXiv 2107.00778): a generic head, and one of the client's own.

A participant trains the received model on the balanced soft-max, the loss of the logits g_k + log n_k where it holds
n_k examples of class k. Beside it, it trains a head p of its own on the plain loss of g + p, whose gradient reaches
neither the body nor the generic head. The model with g is sent and averaged; the client keeps p, which begins as 0,
and uses g + p as it trained them. A client that was never asked uses the global model.

p is linear in what the last linear layer is given (the paper's other kind, a hypernetwork, is left out), so that g + p
is one layer of the model's own shape. A class that the client lacks counts as 1e-8 examples. The simulation keeps
a row for every client that was ever selected. A training that is not finite leaves it as it was.
"""

from functools import cache

import torch

from fedexp.parts import ConfigError, Facts, Layout, Loss, Model, option, readable_network
from fedexp.parts.local.class_logits import FEW, ClassLogits
from fedexp.parts.local.paired_model import PairedCompanion, refuse_pairs
from fedexp.parts.local.personal_layer import last_linear_names


def balance_logits(logits: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """`logits [B, K]` plus log n_k, given how many examples of each class there are, `counts [K]`."""
    return logits + counts.clamp(min=FEW).log()


@cache
def head_columns(layout: Layout, device: torch.device) -> torch.Tensor:
    """The columns `[O]` of the last linear layer in a row; kept, since every step asks for them."""
    return torch.from_numpy(layout.columns(last_linear_names(layout))).to(device)


class FedRoD(ClassLogits):
    """SGD on the balanced soft-max, and a companion with a head of its own."""

    keeps_rows = True

    @property
    def companion(self) -> "FedRoDCompanion":
        return self.settings_as(FedRoDCompanion)

    def change_logits(self, logits: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return balance_logits(logits, counts)

    def refuse(self, model: Model, facts: Facts) -> None:
        refuse_pairs(self, model, facts)
        if not last_linear_names(Layout.of(readable_network(model, facts))):
            raise ConfigError(
                f"local=fedrod gives clients a last linear layer of their own, but model={option(model)} has none; use "
                "local=ditto"
            )


class FedRoDCompanion(PairedCompanion):
    """The private entries are what it adds to the last linear layer."""

    counts_classes = True

    def first_private(self, first: torch.Tensor, layout: Layout) -> torch.Tensor:
        return first.new_zeros((*first.shape[:-1], len(head_columns(layout, first.device))))

    def combine(self, private: torch.Tensor, shared: torch.Tensor, layout: Layout) -> torch.Tensor:
        return shared.index_add(-1, head_columns(layout, private.device), private)

    def shared_cost(
        self, loss: Loss, outputs: torch.Tensor, targets: torch.Tensor, counts: torch.Tensor | None
    ) -> torch.Tensor:
        assert counts is not None
        return loss.per_example(balance_logits(outputs, counts), targets)
