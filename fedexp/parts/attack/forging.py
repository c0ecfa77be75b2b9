"""Model poisoning: malicious clients replace what they trained by something made up.

They know each other and, where an attack says so, what the honest clients of the round send. The base counts them and
puts the forged rows in their places. Legend: C uploads, F malicious ones among them, H honest ones, D entries of a row.
"""

from dataclasses import dataclass

import numpy as np
import torch

from fedexp.core.values import Memory, Uploads, finite
from fedexp.parts.attack.contract import Attack
from fedexp.parts.context import Context


@dataclass(frozen=True)
class Scene:
    """What the attackers `owner [F]` see: their own honest work `own [F, D]`, the others' `honest [H, D]`.

    Where nobody honest takes part, the attackers' own rows stand for the honest ones.
    """

    owner: np.ndarray
    own: torch.Tensor
    honest: torch.Tensor
    memory: Memory
    ctx: Context

    @property
    def clients(self) -> int:
        """Number of participants C."""
        return len(self.own) + len(self.honest)


@dataclass(frozen=True, kw_only=True)
class Forging(Attack):
    """An attack on what is sent."""

    def tamper(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        malicious = ctx.malicious(uploads.owner)
        count = int(malicious.sum())
        memory = {**memory, "columns": {"malicious": count}}
        if not count:
            return uploads, memory
        rows = torch.from_numpy(np.flatnonzero(malicious)).to(uploads.delta.device)
        sound = ~malicious & finite(uploads.delta)
        honest = sound if sound.any() else malicious
        scene = Scene(uploads.owner[malicious], uploads.delta[rows], uploads.where(honest).delta, memory, ctx)
        forged, memory = self.forge(scene)
        return uploads.with_delta(uploads.delta.index_copy(0, rows, forged.to(uploads.delta.dtype))), memory

    def forge(self, scene: Scene) -> tuple[torch.Tensor, Memory]:
        """What the malicious clients send, `[F, D]`, and what they remember."""
        raise NotImplementedError
