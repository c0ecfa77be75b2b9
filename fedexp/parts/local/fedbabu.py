"""FedBABU's clients (Oh et al. 2022, arXiv 2106.06042): they train the body under a head that never moves.

The head (`layers`, by default the last linear layer) keeps its first values in all rounds, at every client and in the
global model, and is not sent. In the paper each client then tunes the whole network on its own examples:
`evaluation.fine_tune_epochs`. With `layers=[]` there is no head, and without tuning it is FedAvg.
"""

import numpy as np
import torch

from fedexp.parts import Layout, select_rows
from fedexp.parts.local.personal_layer import PersonalLayer


class FedBABU(PersonalLayer):
    """SGD on the body alone. Momentum of what does not move stays, too."""

    is_gradient_sum = False
    no_gradient_sum = "moves parts of the network in other steps than the rest"

    def phase_columns(self, layout: Layout) -> np.ndarray | None:
        columns = self.private_columns(layout)
        return columns[columns < layout.parameters]

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        before = slots.clone() if len(slots) else slots
        super().update(w, grad, slots, step, active)
        if len(slots) and active is not None:
            slots.copy_(select_rows(active, slots, before))
