"""The section `evaluation` of the config: what is measured, and how often."""

import math
from typing import Annotated, Literal

from fedexp.config.vocabulary.synonyms import metric_synonym
from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.core.imports.importing import FACTORY
from fedexp.core.part import Part, Positive, Range
from fedexp.maths.curve_metrics import HIGHER_IS_BETTER, MULTI_VALUED, SHARES, metric_name
from fedexp.maths.unseen import unseen_count

BUILT_IN = (*HIGHER_IS_BETTER, *MULTI_VALUED)
ROUNDING = 1e-9  # periods by which a sum of equal durations may fall short of a whole number of them
TAKEN = ("loss", "worst_decile", "best_decile", "std", "jain")  # names of other columns


class Evaluation(Part):
    """What is measured, how often, and the values of the main metric that RoA@x and ToA@x ask for."""

    every: Annotated[int, Range(1)] = 1
    every_s: Annotated[float, Positive] | None = None
    test: bool = True
    validation: bool = False
    metrics: tuple[str, ...] | None = None
    validation_fraction: Annotated[float, Range(0, 1, low_open=True, high_open=True)] = 0.1
    validation_at: Literal["clients"] | None = None
    roa: tuple[Annotated[float, Range()], ...] | None = None
    toa: tuple[Annotated[float, Range()], ...] | None = None
    client_losses: Literal["running", "exact"] = "running"
    local_models: bool = False
    personal_fraction: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    personal_split: Literal["random", "by_class"] = "random"
    own_test: bool = False
    unseen_fraction: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    personal_clients: Annotated[int, Range(1)] = 1000
    fine_tune_epochs: Annotated[int, Range(1)] | None = None
    rank_on: Literal["validation", "test"] = "validation"

    def is_due(self, number: int, begun_s: float, ended_s: float) -> bool:
        """Whether the round of this number is looked at, which took simulated time from `begun_s` to `ended_s`."""
        if self.every_s is None:
            return number % self.every == 0
        begun, ended = (math.floor(now_s / self.every_s + ROUNDING) for now_s in (begun_s, ended_s))
        return ended > begun

    @property
    def loss_columns(self) -> int:
        """How many losses a client reports after training."""
        return 4 if self.client_losses == "exact" else 2

    @property
    def personal(self) -> bool:
        """Whether models are measured at the clients."""
        return self.own_test or self.personal_fraction > 0

    @property
    def tests_local_models(self) -> bool:
        """Whether the participants' own models are scored on the test data."""
        return self.local_models and self.test

    @property
    def validates_at_clients(self) -> bool:
        """Whether clients set validation examples apart, each for the model that it uses."""
        return self.validation_at == "clients"

    @property
    def confusion_matrix(self) -> bool:
        """Whether the answers of the last model are counted by class."""
        return "confusion_matrix" in (self.metrics or ())

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
        if self.every_s is not None and self.every > 1:
            raise ConfigError(
                f"Evaluation.every_s={self.every_s:g} counts simulated seconds instead of rounds, so that "
                f"evaluation.every must be 1, got {self.every}; write evaluation.every_s=null, or leave out "
                "evaluation.every"
            )
        if self.own_test and self.personal_fraction:
            raise ConfigError(
                "Evaluation.own_test=true measures clients on their own test examples, so that they hold out none, "
                f"got evaluation.personal_fraction={self.personal_fraction:g}; add evaluation.personal_fraction=0, or "
                "leave evaluation.own_test out"
            )
        if self.personal_split == "by_class" and not self.personal_fraction:
            raise ConfigError(
                "Evaluation.personal_split=by_class is about what clients hold out, but they hold out nothing, got "
                "evaluation.personal_fraction=0; set evaluation.personal_fraction=0.2"
            )
        if self.fine_tune_epochs and not (self.personal or self.validates_at_clients):
            raise ConfigError(
                "Evaluation.fine_tune_epochs tunes the models that are measured at the clients, but none are, got "
                f"{self.fine_tune_epochs} with evaluation.personal_fraction=0; set evaluation.personal_fraction=0.2"
            )
        if self.unseen_fraction and not self.personal:
            raise ConfigError(
                "Evaluation.unseen_fraction compares clients that never train with the others, which must hold out "
                "examples for it, got evaluation.personal_fraction=0; set evaluation.personal_fraction=0.2"
            )
        if self.metrics is not None:
            refuse_names(self.metrics)


def refuse_names(entries: tuple[str, ...]) -> None:
    """Raises ConfigError where entries of `evaluation.metrics` are neither built-in metrics nor `module:function`."""
    names = [metric_name(entry) for entry in entries]
    if len(set(names)) < len(names) or not names or entries[0] in MULTI_VALUED:
        raise ConfigError(
            "Evaluation.metrics must be different ones, the first of them (the main one) a single number, got "
            f"[{', '.join(entries)}]; write null for what suits the loss"
        )
    for entry, name in zip(entries, names, strict=True):
        if entry in BUILT_IN:
            continue
        if not FACTORY.fullmatch(entry):
            hint = metric_synonym(entry) or _as_function(entry)
            cure = f"write {hint}" if hint else did_you_mean(entry, BUILT_IN)
            if cure.startswith("known") and entry.isidentifier():
                cure = f"write my_metrics:{entry} for a function in my_metrics.py; {cure}"
            raise ConfigError(
                f"Evaluation.metrics must be built-in metrics, or functions of yours as module:function, got {entry}; "
                f"{cure}"
            )
        if name in (*BUILT_IN, *TAKEN):
            raise ConfigError(
                f"Evaluation.metrics must be functions with names of their own, but {entry} would make columns of the "
                f"name {name}, which others have; rename it"
            )


def _as_function(entry: str) -> str | None:
    """What to write for `FOLDER/FILE.py:function` or `module.function`; None for what is neither."""
    file, _, function = entry.partition(".py:")
    module = file.strip("./").replace("/", ".")
    hint = f"{module}:{function}" if function else ":".join(entry.rsplit(".", 1))
    return hint if FACTORY.fullmatch(hint) else None
