"""What the malicious clients do: write here what they send instead of what they trained.

As it stands, its opposite. What they do to their examples before the first round is `poison`, and `probes` are examples
on which a success is measured.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Attack, Context, Memory, Range, Uploads


class OwnAttack(Attack):
    """Every malicious client sends `-scale` times what it trained."""

    scale: Annotated[float, Range(0)] = 1.0

    def tamper(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        factor = torch.from_numpy(np.where(ctx.malicious(uploads.owner), -self.scale, 1.0)).to(uploads.delta)
        return uploads.with_delta(uploads.delta * factor[:, None]), memory
