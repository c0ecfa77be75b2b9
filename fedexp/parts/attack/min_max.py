"""Min-max (Shejwalkar & Houmansadr 2021, NDSS): no farther from honest updates than these are from each other.

All malicious clients send mean + gamma p. gamma is the largest for which no honest update is farther away than the two
most distant honest updates are from each other. The direction p is the negated standard deviation (`std`), sign of the
mean (`sign`), or mean of unit length (`unit`).
Deviation: gamma is not searched by halving steps; the distances are quadratic in it, so it is the smallest positive
root.
"""

from typing import Literal

import torch

from fedexp.parts import AttackerKnowledge, Memory, ModelPoisoning, squared_distances


def largest_step(mean: torch.Tensor, direction: torch.Tensor, rows: torch.Tensor) -> float:
    """The largest gamma with max_i ||mean + gamma direction - rows_i|| <= max_ij ||rows_i - rows_j||.

    `mean [D]`, `direction [D]`, `rows [H, D]`.
    """
    square = float(direction @ direction)
    if square == 0:
        return 0.0
    offset = mean - rows
    projection, squared_offset = offset @ direction, (offset * offset).sum(dim=1)
    slack = (squared_distances(rows).max() - squared_offset).clamp(min=0)
    return float(((projection * projection + square * slack).sqrt() - projection).min()) / square


class MinMax(ModelPoisoning):
    """The honest mean, moved along `direction` as far as the spread of the honest updates allows."""

    direction: Literal["std", "sign", "unit"] = "std"

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        rows = knowledge.honest_updates.double()
        mean = rows.mean(dim=0)
        direction = {
            "std": lambda: -rows.std(dim=0, correction=0),
            "sign": lambda: -mean.sign(),
            "unit": lambda: -mean / mean.norm().clamp(min=1e-300),
        }[self.direction]()
        forged = mean + largest_step(mean, direction, rows) * direction
        return forged.to(knowledge.own_updates.dtype).expand_as(knowledge.own_updates), knowledge.memory
