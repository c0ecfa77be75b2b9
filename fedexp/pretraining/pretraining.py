"""The contract of pretraining: what the server makes of the first model before any client sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from fedexp.roles import LocalRule
from fedexp.spec import Part
from fedexp.values import Weights


@dataclass(frozen=True, kw_only=True)
class Pretraining(Part):
    """Where the first round begins. The base begins it with the model as it was drawn."""

    needs_public: ClassVar[bool] = False  # whether the server must have public data

    def prepare(self, first: Weights, train: Callable[[LocalRule], Weights]) -> Weights:
        """The model before the first round; `train` trains the drawn one on all public data as a rule says."""
        return first
