"""FedBABU's clients (Oh et al. 2022, arXiv 2106.06042): they train the body under a head that never moves.

The head (`layers`, by default the last linear layer) keeps its first values in all rounds, at every client and in the
global model, and is not sent. In the paper each client then tunes the whole network on its own examples:
`evaluation.fine_tune_epochs`. With `layers=[]` there is no head, and without tuning it is FedAvg.
"""

import numpy as np

from fedexp.parts import Layout
from fedexp.parts.local.personal_layer import PersonalLayer


class FedBABU(PersonalLayer):
    """SGD on the body alone."""

    is_gradient_sum = False
    no_gradient_sum = "moves parts of the network in other steps than the rest"

    def phase_columns(self, layout: Layout) -> np.ndarray | None:
        columns = self.private_columns(layout)
        return columns[columns < layout.parameters]
