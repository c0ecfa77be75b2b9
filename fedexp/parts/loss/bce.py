"""Binary cross-entropy: each of an example's K labels is there or not, whatever the others are.

An example costs the mean over its labels of -(y log p + (1 - y) log(1 - p)), where p is the sigmoid of the output.
"""

import torch
from torch.nn import functional as F

from fedexp.parts.loss.contract import Loss


class BCE(Loss):
    """For several labels an example."""

    takes = ("labels",)
    metrics = ("macro_f1", "accuracy")

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(outputs, targets.to(outputs.dtype), reduction="none").mean(dim=-1)
