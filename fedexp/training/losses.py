"""The loss that training minimises, as the local rule defines it for every example. Legend: B batch, K classes."""

from collections.abc import Callable

import torch
from torch.nn import functional as F

from fedexp.core.errors import ConfigError
from fedexp.core.fields import brief, resembles
from fedexp.core.part import named
from fedexp.parts.local.contract import LocalRule

Losses = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def losses(rule: LocalRule, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The loss of every example, `[B]`, given logits `[B, K]` and labels `[B]`.

    Raises:
        ConfigError: the rule returns something else.
    """
    each = rule.loss(logits, labels)
    if resembles(each, logits, labels.shape):
        return each
    raise ConfigError(
        f"{named('local', rule)}: loss must return a number for every example, {logits.dtype} {list(labels.shape)}, "
        f"got {brief(each)}"
    )


def mean_loss(rule: LocalRule, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean loss, a scalar, of logits `[B, K]` and labels `[B]`; the usual loss takes one kernel, which is fast."""
    if type(rule).loss is LocalRule.loss:
        return F.cross_entropy(logits, labels)
    return losses(rule, logits, labels).mean()
