"""Model poisoning: malicious clients replace their trained updates by forged ones.

They know each other and, if an attack says so, what the honest clients of the round send. The base class counts them
and puts the forged rows in their places. A row is a client's whole message, with what its rule sends beside the delta.
Legend: C uploads, F malicious and H honest ones, D entries of a message.
"""

from dataclasses import dataclass

import numpy as np
import torch

from fedexp.parts import Attack, Context, Memory, Uploads, finite


@dataclass(frozen=True)
class AttackerKnowledge:
    """What attackers `owner [F]` know: their honest `own_updates [F, D]` and the others' `honest_updates [H, D]`.

    If no honest client takes part, the attackers' own rows stand for the honest ones.
    """

    owner: np.ndarray
    own_updates: torch.Tensor
    honest_updates: torch.Tensor
    memory: Memory
    ctx: Context

    @property
    def clients(self) -> int:
        """Number of participants C."""
        return len(self.own_updates) + len(self.honest_updates)


class ModelPoisoning(Attack):
    """An attack on the uploads: malicious clients replace their updates.

    One that never looks at `honest_updates` says so by `reads_honest_rows = False`.
    """

    reads_honest_rows = True

    def tamper(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        malicious = ctx.malicious(uploads.owner)
        count = int(malicious.sum())
        memory = {**memory, "columns": {"malicious": count}}
        if not count:
            return uploads, memory
        rows = torch.from_numpy(np.flatnonzero(malicious)).to(uploads.delta.device)
        honest_finite = ~malicious & finite(uploads.delta)
        honest = honest_finite if honest_finite.any() else malicious
        knowledge = AttackerKnowledge(
            uploads.owner[malicious], uploads.delta[rows], uploads.where(honest).delta, memory, ctx
        )
        forged, memory = self.forge(knowledge)
        return uploads.with_delta(uploads.delta.index_copy(0, rows, forged.to(uploads.delta.dtype))), memory

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        """The rows `[F, D]` that the malicious clients send, and their memory."""
        raise NotImplementedError
