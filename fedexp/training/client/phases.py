"""The phases of local training: in each step one part of the network moves, and the rest stays bit for bit.

Legend: R rows, D entries of a row, P trainable ones.
"""

import torch

from fedexp.core.values import Layout
from fedexp.parts.local.contract import LocalRule


class Phases:
    """Which trainable entries move in which phase, for a rule that has phases."""

    def __init__(self, rule: LocalRule, layout: Layout, like: torch.Tensor, order: torch.Tensor | None = None) -> None:
        """`like` (any shape) gives type and device; `order [D]` is that of the entries, if it is not the layout's."""
        columns = rule.phase_columns(layout)
        self.in_first: torch.Tensor | None = None
        if columns is not None:
            in_first = torch.zeros(layout.parameters, dtype=torch.bool, device=like.device)
            in_first[torch.from_numpy(columns).to(like.device)] = True
            self.in_first = in_first if order is None else in_first[order[: layout.parameters]]
        self.dtype = like.dtype

    def moving(self, is_first: torch.Tensor, active: torch.Tensor) -> torch.Tensor:
        """1 for each entry that moves, else 0, `[R, P]`; `is_first [R, 1]` is above 0 in the first phase.

        Without phases that is `active [R, 1]` itself: which rows take the step at all.
        """
        if self.in_first is None:
            return active
        return (self.in_first == (is_first > 0)).to(self.dtype) * active
