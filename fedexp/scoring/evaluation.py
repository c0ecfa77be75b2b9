"""What is measured of the models, and how often: the node `evaluation` of the config."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fedexp.core.part import Fraction, Part, Range

Threshold = Annotated[float, Fraction]


@dataclass(frozen=True, kw_only=True)
class Evaluation(Part):
    """What is measured, how often, and the accuracies that RoA@x and ToA@x ask for."""

    every: Annotated[int, Range(1)] = 1
    test: bool = True
    validation: bool = False
    validation_fraction: Annotated[float, Range(0, 1, low_open=True, high_open=True)] = 0.1
    roa: tuple[Threshold, ...] = (0.5, 0.8, 0.9, 0.95)
    toa: tuple[Threshold, ...] = (0.5, 0.8, 0.9, 0.95)
    client_losses: Literal["running", "exact"] = "running"
    local_models: bool = False
    personal_fraction: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    personal_clients: Annotated[int, Range(1)] = 1000
    rank_on: Literal["validation", "test"] = "validation"
