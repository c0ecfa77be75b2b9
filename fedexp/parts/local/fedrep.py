"""FedRep's clients (Collins et al. 2021, arXiv 2102.07078, algorithm 1): first the own head, then the shared body.

In a round a client trains its `layers` (the head, by default the last linear layer) for `head_epochs`, while the body
stays as it was received; then, for `epochs` or `steps`, the body while the head stays. The body is sent, the head never
is, as with `local=personal_layer`. In algorithm 1 the body takes one step. The authors' scripts (commit d82e629) train
the head for ten epochs, then the body: for one on CIFAR-10 with two classes a client (`epochs=1 head_epochs=10`), for
five in the others. The optimizer starts anew in each round, but not between head and body, which have momentum of their
own. In the paper the head is trained once more before a client's model is measured; here that is
`evaluation.fine_tune_epochs`, of the whole network. With `layers=[]` there is no head to train: FedAvg.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Range, select_rows
from fedexp.parts.local.fedbabu import FedBABU


class FedRep(FedBABU):
    """SGD on the head, then on the body. Momentum of what does not move stays, too."""

    head_epochs: Annotated[int, Range(1)] = 1

    @property
    def first_epochs(self) -> int:
        """How many epochs the first phase has: none where there is no head."""
        return 0 if self.layers == () else self.head_epochs

    def steps_in(self, epoch: int) -> int:
        return self.first_epochs * epoch + super().steps_in(epoch)

    def passes(self, examples: np.ndarray) -> np.ndarray:
        return self.first_epochs + super().passes(examples)

    def first_phase(self, steps: int, epoch: int) -> np.ndarray:
        return np.arange(steps) < self.first_epochs * epoch

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        before = slots.clone() if len(slots) else slots
        super().update(w, grad, slots, step, active)
        if len(slots) and active is not None:
            slots.copy_(select_rows(active, slots, before))
