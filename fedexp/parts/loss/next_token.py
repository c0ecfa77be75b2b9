"""The cross-entropy of the next token, for language models. Legend: B batch, L tokens of an example, K of them known.

An example costs the mean over its tokens that are to be predicted, and nothing where there is none: `IGNORED` tokens do
not count. Examples count alike, whatever their number of tokens. The metric `perplexity` counts tokens alike.
"""

import torch
from torch.nn import functional as F

from fedexp.parts import IGNORED, Loss


class NextToken(Loss):
    """For text: `outputs [B, L, K]`, `targets [B, L]`."""

    takes = ("tokens",)
    metrics = ("accuracy", "perplexity")

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        token_losses = F.cross_entropy(outputs.movedim(-1, 1), targets, ignore_index=IGNORED, reduction="none")
        token_counts = (targets != IGNORED).flatten(1).sum(dim=1)
        return token_losses.flatten(1).sum(dim=1) / token_counts.clamp(min=1)
