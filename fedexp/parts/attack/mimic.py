"""Mimic (Karimireddy, He & Jaggi 2022, arXiv 2006.09365): all malicious clients copy one honest one.

No upload looks wrong, yet one client's data weigh many times what they should. The attackers copy the client whose
update reaches farthest along the direction in which the honest updates differ most. This direction is tracked over the
rounds by Oja's rule, z <- t / (1 + t) z + 1 / (1 + t) sum_i c_i <c_i, z> / ||.||, c_i being the centred updates.
Deviations: the paper chooses one worker for good after a warm-up; here participants differ from round to round, so the
choice is made in every round. The authors' code centres by the mean of all rounds so far, here it is that of the round.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch

from fedexp.parts import AttackerKnowledge, Memory, ModelPoisoning, blocks


def oja_step(direction: torch.Tensor, rows: torch.Tensor, past_rounds: int) -> torch.Tensor:
    """The float64 direction `[D]` after a step of Oja's rule on rows `[H, D]`, with `past_rounds` steps before."""
    reach = project(centred_blocks(rows), direction)
    new_direction = torch.cat([reach @ centred for _, centred in centred_blocks(rows)])
    length = new_direction.norm()
    if length == 0:
        return direction
    blended = past_rounds / (1 + past_rounds) * direction + new_direction / length / (1 + past_rounds)
    return blended / blended.norm()


def project(row_blocks: Iterable[tuple[slice, torch.Tensor]], direction: torch.Tensor) -> torch.Tensor:
    """The inner products `[H]` of rows with a float64 `direction [D]`; the rows come as blocks of columns `[H, B]`."""
    products = direction.new_zeros(())
    for columns, block in row_blocks:
        products = products + block.double() @ direction[columns]
    return products


def centred_blocks(rows: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yields blocks of columns of the rows `[H, D]`: each slice, and its columns less their mean, `[H, B]`.

    In float64, because the squares of large updates overflow in float32.
    """
    for columns, block in blocks(rows):
        wide = block.double()
        yield columns, wide - wide.mean(dim=0)


class Mimic(ModelPoisoning):
    """Copies the honest update with the largest projection; remembers the `direction [D]` and the rounds `seen`."""

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        memory, rows = knowledge.memory, knowledge.honest_updates
        direction = memory["direction"].double() if "direction" in memory else self._random_direction(knowledge)
        direction, past_rounds = oja_step(direction, rows, memory.get("seen", 0)), memory.get("seen", 0) + 1
        copied = rows[int(project(blocks(rows), direction).argmax())]
        return copied.expand_as(knowledge.own_updates), {**memory, "direction": direction, "seen": past_rounds}

    def _random_direction(self, knowledge: AttackerKnowledge) -> torch.Tensor:
        rng, entries = knowledge.ctx.run_rng("attack", "direction"), knowledge.own_updates.shape[1]
        draws = rng.standard_normal(entries, dtype=np.float32)
        direction = torch.from_numpy(draws).double().to(knowledge.own_updates.device)
        return direction / direction.norm()
