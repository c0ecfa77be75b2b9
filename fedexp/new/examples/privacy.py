"""What is clipped and noised, and for whom: write here what the server may see of an update.

As it stands, updates are clipped and nothing is promised. Noise is drawn from `ctx.rng("privacy", client)`;
`guarantees`, `bound`, `spend` and `promise` make a promise of it; `example_clip` protects single examples in training.
"""

from typing import Annotated

from fedexp.parts import Context, Memory, Positive, Privacy, Uploads


class OwnPrivacy(Privacy):
    """No update is longer than `clip`."""

    clip: Annotated[float, Positive] = 1.0

    def protect(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        norm = uploads.delta.norm(dim=1, keepdim=True)
        return uploads.with_delta(uploads.delta / (norm / self.clip).clamp(min=1)), memory
