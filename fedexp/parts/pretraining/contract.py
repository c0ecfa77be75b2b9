"""The contract of pretraining: what the server makes of the first model before any client sees it."""

from collections.abc import Callable
from typing import ClassVar

from fedexp.core.part import Part
from fedexp.core.values import Weights
from fedexp.parts.local.contract import LocalRule


class Pretraining(Part):
    """Trains the first model before the first round. The base leaves it at its initial values."""

    needs_public: ClassVar[bool] = False  # whether the server must have public data

    def prepare(self, first: Weights, train: Callable[[LocalRule], Weights]) -> Weights:
        """The model before the first round; `train` trains the initial one on all public data by a local rule."""
        return first
