"""The section `evaluation` of the config: what is measured, and how often."""

from typing import Annotated, Literal

from fedexp.core.errors import ConfigError
from fedexp.core.part import Part, Range
from fedexp.maths.curve_metrics import SHARES
from fedexp.maths.unseen import unseen_count

MetricName = Literal[
    "accuracy", "top5", "macro_f1", "balanced_accuracy", "class_recall", "perplexity", "mae", "rmse", "r2"
]


class Evaluation(Part):
    """What is measured, how often, and the values of the main metric that RoA@x and ToA@x ask for."""

    every: Annotated[int, Range(1)] = 1
    test: bool = True
    validation: bool = False
    metrics: tuple[MetricName, ...] | None = None
    validation_fraction: Annotated[float, Range(0, 1, low_open=True, high_open=True)] = 0.1
    roa: tuple[Annotated[float, Range()], ...] | None = None
    toa: tuple[Annotated[float, Range()], ...] | None = None
    client_losses: Literal["running", "exact"] = "running"
    local_models: bool = False
    personal_fraction: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    own_test: bool = False
    unseen_fraction: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    personal_clients: Annotated[int, Range(1)] = 1000
    rank_on: Literal["validation", "test"] = "validation"

    @property
    def loss_columns(self) -> int:
        """How many losses a client reports after training."""
        return 4 if self.client_losses == "exact" else 2

    @property
    def personal(self) -> bool:
        """Whether models are measured at the clients."""
        return self.own_test or self.personal_fraction > 0

    def unseen_count(self, clients: int) -> int:
        """How many of so many clients never train: at least one if any are to."""
        return unseen_count(self.unseen_fraction, clients)

    def refuse(self, metric: str) -> None:
        """Raises ConfigError where RoA or ToA is asked of a value that this main metric cannot have."""
        for key, thresholds in (("roa", self.roa), ("toa", self.toa)):
            odd = [x for x in thresholds or () if not 0 <= x <= 1]
            if odd and metric in SHARES:
                raise ConfigError(f"evaluation.{key} must be values of {metric}, from 0 to 1, got {odd[0]:g}")

    def check(self) -> None:
        if self.own_test and self.personal_fraction:
            raise ConfigError(
                "Evaluation.own_test=true measures clients on their own test examples, so that they hold out none, "
                f"got evaluation.personal_fraction={self.personal_fraction:g}; set one of the two to its default"
            )
        if self.unseen_fraction and not self.personal:
            raise ConfigError(
                "Evaluation.unseen_fraction compares clients that never train with the others, which must hold out "
                "examples for it, got evaluation.personal_fraction=0; set evaluation.personal_fraction=0.2"
            )
        if self.metrics is not None and (
            len(set(self.metrics)) < len(self.metrics) or not self.metrics or self.metrics[0] == "class_recall"
        ):
            raise ConfigError(
                "Evaluation.metrics must be different ones, the first of them (the main one) a single number, got "
                f"[{', '.join(self.metrics)}]; write null for what suits the loss"
            )
