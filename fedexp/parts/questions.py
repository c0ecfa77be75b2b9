"""The smaller protocols behind `ctx.fleet`, `ctx.validation` and the others: questions that only a few parts ask.

Legend: n clients asked for, C participants, R models, D entries of a model, P trainable entries, S examples, K classes.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch

from fedexp.core.client_resources import Journeys, Resources
from fedexp.core.values import Canaries, Uploads, Weights
from fedexp.parts.workload import Workload


class FleetView(Protocol):
    """The clients' machines, links and work."""

    @property
    def simulates(self) -> bool:
        """Whether the fleet has machines and links to ask for."""
        ...

    def resources(self, owner: np.ndarray) -> Resources:
        """What the clients `owner [n]` can do in this round (a fleet without machines raises)."""
        ...

    @property
    def busy(self) -> np.ndarray:
        """The clients `[b]` that cannot be asked, ascending: they train on what they were sent before, or are away."""
        ...

    @property
    def capacity(self) -> int | None:
        """How many clients may begin in this round; None where all begin together, as many as are chosen."""
        ...

    @property
    def now_s(self) -> float:
        """When the step begins, in simulated seconds: if nobody was there, when somebody came."""
        ...

    @property
    def waited_s(self) -> float:
        """How long the server waited for that, 0 if somebody was there."""
        ...

    def stays_s(self, owner: np.ndarray) -> np.ndarray:
        """Seconds from the beginning of the step until each of the clients `owner [n]` goes, and its work is lost."""
        ...

    @property
    def shares_link(self) -> bool:
        """Whether uploads come one after another."""
        ...

    @property
    def idle_s(self) -> float:
        """How long the server waits if there is nobody whom it can ask, in simulated seconds."""
        ...

    def journeys(self, owner: np.ndarray) -> Journeys:
        """How long the clients `owner [n]` would take, each by itself, if they began in this round."""
        ...

    def draws(self, *name: str, owner: np.ndarray) -> np.ndarray:
        """Four uniform draws of each of these clients in this round, `[n, 4]`."""
        ...

    def run_draws(self, *name: str, owner: np.ndarray) -> np.ndarray:
        """Four uniform draws of each of these clients, the same in every round, `[n, 4]`."""
        ...

    @property
    def workload(self) -> Workload:
        """How long clients train, and in which batches."""
        ...

    def epochs(self, examples: np.ndarray, owner: np.ndarray | None = None) -> np.ndarray:
        """Passes over its data that a client with so many examples `[n]` makes in a round, float64 [n].

        Where their number is drawn, that of the clients `owner [n]` in this round, or the mean without them.
        """
        ...

    @property
    def reports_losses(self) -> bool:
        """Whether those who take part also tell the loss of the model that they were sent."""
        ...

    def judged_examples(self, owner: np.ndarray) -> np.ndarray:
        """By how many examples each of the clients `owner [n]` judges a model, int64 [n]."""
        ...

    @property
    def judging_s(self) -> float:
        """The seconds that clients needed so far in this round to receive models, evaluate them and tell losses."""
        ...

    @property
    def evaluators(self) -> tuple[np.ndarray, ...]:
        """The clients `[n]`, ascending, that evaluated each of the models sent for evaluation so far this round."""
        ...


class Traffic(Protocol):
    """How large the messages of a round are."""

    @property
    def private_columns(self) -> np.ndarray:
        """The columns `[m]` of a row, ascending, that never leave a client."""
        ...

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """The names of the rows [P] that stand behind the delta in a client's message, in their order."""
        ...

    @property
    def sent_entries(self) -> int:
        """Number of trainable entries of a row that travel: all but those that clients keep to themselves."""
        ...

    @property
    def megabytes(self) -> float:
        """The size of one row as float32, statistics included."""
        ...

    @property
    def download_bits(self) -> float:
        """What the server sends to a client in a round: trainable entries of 32 bits, those of extra rows included."""
        ...

    @property
    def upload_ratio(self) -> float:
        """How many times as much a client sends back."""
        ...

    @property
    def example_bytes(self) -> int:
        """Bytes of one example as it is stored."""
        ...


class Validation(Protocol):
    """The server's validation data, split off the training data where some part asks for it."""

    @property
    def size(self) -> int:
        """How many examples there are; 0 unless some part asks for them."""
        ...

    def losses(self, rows: torch.Tensor, examples: np.ndarray | None = None) -> np.ndarray:
        """Loss of every model `rows [R, D]` on the validation data, or on these of it, float64 [R]."""
        ...

    def mixture_losses(self, mix: np.ndarray, rows: torch.Tensor, positions: range | None = None) -> np.ndarray:
        """Loss of every model `mix [R, M] @ rows [M, D]`, on all or a part of an order drawn once, float64 [R]."""
        ...

    def shares(self, uploads: Uploads) -> np.ndarray:
        """The weight of each row in the aggregator's mean, float64 [C]."""
        ...


class PublicData(Protocol):
    """The server's public data, which no client holds."""

    @property
    def size(self) -> int:
        """How many examples there are."""
        ...

    def train(self, row: torch.Tensor) -> torch.Tensor:
        """The model `[D]` that a client with the public examples would make of one `[D]`; at no cost."""
        ...

    def outputs(self, rows: torch.Tensor, limit: int = 1000) -> torch.Tensor:
        """Log-probabilities that every model `rows [n, D]` gives the public examples, `[n, S, K]`.

        Of more than `limit` examples a seeded sample is asked, the same in every round and part of every larger one; a
        model's answers do not depend on which others are asked.
        """
        ...


class AuditView(Protocol):
    """What an audit of the privacy works with."""

    @property
    def canaries(self) -> Canaries:
        """The examples that the audit planted."""
        ...

    @property
    def delta(self) -> float:
        """The chance that the promised privacy fails."""
        ...

    def example_losses(self, weights: Weights, index: np.ndarray) -> np.ndarray:
        """Loss of a model on each of the training examples `index [n]`, float64 [n]."""
        ...

    def gradients(self, index: np.ndarray) -> torch.Tensor:
        """The received global model's gradient at each of these examples, clipped as in training, `[n, P]`."""
        ...

    def gradient_sum(self, index: np.ndarray) -> torch.Tensor:
        """The sum of these examples' gradients, clipped as in training, `[P]`."""
        ...

    def run_jobs(self, out: torch.Tensor, jobs: list[tuple[np.ndarray, Callable[[], torch.Tensor]]]) -> None:
        """Lets idle workers run jobs that fill rows of `out [n, ...]`.

        A job is the positions of its rows, `[k]`, and a function that gives these rows, `[k, ...]`.
        """
        ...
