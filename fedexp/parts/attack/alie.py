"""A little is enough (Baruch, Baruch & Goldberg 2019, arXiv 1902.06156): small shifts that hide in the spread.

All malicious clients send mean - z std of the updates they know, coordinate by coordinate, with
z = Phi^-1((n - f - s) / (n - f)), s = floor(n / 2 + 1) - f: the farthest from the mean that a majority still supports.
`knows=own` takes mean and standard deviation from the attackers' own honest updates (the paper), `honest` from those
of the honest participants (the usual, stronger reading). Deviations: z below 0 counts as 0; a fixed `z` may be given.
"""

from typing import Literal

import torch

from fedexp.parts import AttackerKnowledge, Memory, ModelPoisoning


def largest_z(clients: int, malicious: int) -> float:
    """The z for `malicious` of `clients` participants; 0 if no majority is possible or none is needed."""
    from scipy.special import ndtri

    honest = clients - malicious
    supporters = clients // 2 + 1 - malicious
    if honest <= 0 or supporters <= 0:
        return 0.0
    return max(0.0, float(ndtri((honest - supporters) / honest)))


class ALIE(ModelPoisoning):
    """Mean minus `z` standard deviations (null: by the paper's formula)."""

    z: float | None = None
    knows: Literal["honest", "own"] = "honest"

    @property
    def reads_honest_rows(self) -> bool:
        """Whether it takes mean and standard deviation from the updates of honest clients."""
        return self.knows == "honest"

    def why_harmless(self, participants: int, malicious: int) -> str:
        if self.z is not None or largest_z(participants, malicious) > 0:
            return ""
        counts = [count for count in range(participants) if largest_z(participants, count) > 0]
        amount = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(*counts)
        least = f"it takes {amount}" if counts else "no number of them gives more"
        return (
            f"with {malicious} malicious of {participants} participants, as are to be expected, its z is 0 and they "
            f"send the plain mean of the others: {least}, or set attack.z"
        )

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        reference = (knowledge.honest_updates if self.knows == "honest" else knowledge.own_updates).double()
        z = largest_z(knowledge.clients, len(knowledge.own_updates)) if self.z is None else self.z
        forged = reference.mean(dim=0) - z * reference.std(dim=0, correction=0)
        return forged.to(knowledge.own_updates.dtype).expand_as(knowledge.own_updates), knowledge.memory
