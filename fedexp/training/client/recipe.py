"""The loss, local rule and privacy of local training."""

from dataclasses import dataclass

from fedexp.parts.local.contract import LocalRule
from fedexp.parts.loss.contract import Loss
from fedexp.parts.privacy.contract import Privacy


@dataclass(frozen=True)
class Recipe:
    """The loss, local rule and privacy of local training; `classes` is K, the number of a model's outputs."""

    loss: Loss
    rule: LocalRule
    privacy: Privacy
    classes: int
