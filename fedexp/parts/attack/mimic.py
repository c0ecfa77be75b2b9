"""Mimic (Karimireddy, He & Jaggi 2022, arXiv 2006.09365): all malicious clients copy one honest one.

No upload looks wrong, yet one client's data weigh many times what they should. The attackers copy the client whose
update reaches farthest along the direction in which the honest updates differ most. This direction is tracked over the
rounds by Oja's rule, z <- t / (1 + t) z + 1 / (1 + t) sum_i c_i <c_i, z> / ||.||, c_i being the centred updates.
Deviation: the paper chooses one worker for good after a warm-up; here participants differ from round to round, so the
choice is made in every round.
"""

from dataclasses import dataclass

import numpy as np
import torch

from fedexp.core.values import Memory
from fedexp.parts.attack.forging import Forging, Scene


def follow(direction: torch.Tensor, rows: torch.Tensor, seen: int) -> torch.Tensor:
    """The direction `[D]` after one more step of Oja's rule on the rows `[H, D]`, with `past_rounds` steps before."""
    centred = rows - rows.mean(dim=0)
    fresh = (centred @ direction) @ centred
    length = fresh.norm()
    if length == 0:
        return direction
    moved = seen / (1 + seen) * direction + fresh / length / (1 + seen)
    return moved / moved.norm()


@dataclass(frozen=True, kw_only=True)
class Mimic(Forging):
    """Copies the honest update with the largest projection; remembers the `direction [D]` and the rounds `seen`."""

    def forge(self, scene: Scene) -> tuple[torch.Tensor, Memory]:
        rows, memory = scene.honest.double(), scene.memory  # the squares of large updates overflow in float32
        direction = memory["direction"].double() if "direction" in memory else self._first(scene)
        direction, seen = follow(direction, rows, memory.get("seen", 0)), memory.get("seen", 0) + 1
        copied = scene.honest[int((rows @ direction).argmax())]
        return copied.expand_as(scene.own), {**memory, "direction": direction, "seen": seen}

    def _first(self, scene: Scene) -> torch.Tensor:
        draws = scene.ctx.run_rng("attack", "direction").standard_normal(scene.own.shape[1], dtype=np.float32)
        direction = torch.from_numpy(draws).double().to(scene.own.device)
        return direction / direction.norm()
