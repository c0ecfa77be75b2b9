"""The contract of pretraining: what the server makes of the first model before any client sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from fedexp.core.part import Part
from fedexp.core.values import Weights
from fedexp.parts.local.contract import LocalRule


@dataclass(frozen=True, kw_only=True)
class Pretraining(Part):
    """Where the first round begins. The base begins it with the model as it was drawn."""

    needs_public: ClassVar[bool] = False  # whether the server must have public data

    def prepare(self, first: Weights, train: Callable[[LocalRule], Weights]) -> Weights:
        """The model before the first round; `train` trains the drawn one on all public data as a rule says."""
        return first
