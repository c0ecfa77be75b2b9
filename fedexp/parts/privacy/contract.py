"""The contract of privacy: what engines do with single examples, what is done to uploads, and the ledger.

Legend: C participants, N clients, D entries of a model.
"""

from typing import ClassVar, Literal

import numpy as np

from fedexp.core.part import Part
from fedexp.core.values import Columns, Memory, Uploads
from fedexp.parts.context import Context
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.model.contract import Model
from fedexp.parts.privacy.ledger import Ledger

Sampling = Literal["rule", "poisson", "shuffled"]  # how a client's batches are drawn: as its rule says, or for privacy


class Privacy(Part):
    """What protects the clients' examples, and the ledger of what was guaranteed to whom. The base protects nothing.

    Protection of examples happens while a client trains: `sampling`, `example_clip` and `example_noise` tell the
    engines. Protection of clients happens to what they send: `protect`.
    """

    guarantees: ClassVar[bool] = False  # whether it promises anything that other parts may not undo
    noises_mean: ClassVar[bool] = False  # whether its noise is right for a mean of the rows with equal shares alone

    @property
    def required_delta(self) -> float:
        """Delta, the chance that the promise fails; 0 where nothing is promised."""
        return 0.0

    @property
    def covers_uploads(self) -> bool:
        """Whether it protects what is sent, and not each example while a client trains."""
        return self.guarantees and self.example_clip is None

    @property
    def counts_uploads(self) -> bool:
        """Whether its ledger counts what each client sends, and not what the server makes of all of it."""
        return self.guarantees and not self.noises_mean

    @property
    def sampling(self) -> Sampling:
        """How a client's batches are drawn."""
        return "rule"

    @property
    def example_clip(self) -> float | None:
        """The norm at which the engines clip each example's gradient; None: they need no gradient of single ones."""
        return None

    @property
    def example_noise(self) -> float:
        """Standard deviation of the noise on every coordinate of a batch's sum of clipped gradients."""
        return 0.0

    def refuse(self, model: Model, facts: Facts) -> None:
        """Raises ConfigError where it cannot protect the training of such networks, and says why."""

    def calibrate_noise(self, sizes: np.ndarray, rule: LocalRule, rate: float) -> "Privacy":
        """A copy with its noise computed from the numbers of examples of the clients, `sizes [N]`.

        `rate` is the chance of a client to be asked in a round: 1 where the selector does not draw uniformly.

        Raises:
            ConfigError: there is no such noise, or nobody could train.
        """
        return self

    def promise(self) -> str | None:
        """The guarantee in one sentence (what, to whom, on which assumption); None without one."""
        return None

    def terms(self) -> dict[str, float]:
        """The numbers of the guarantee: `delta` and `noise_multiplier`; empty without one."""
        return {}

    def spend(self, owner: np.ndarray, steps: np.ndarray, memory: Memory, ctx: Context) -> Memory:
        """Enters the `steps [C]` of the participants `owner [C]` into the ledger."""
        return memory

    def forecast(self, selected: Ledger, rounds: int, ctx: Context) -> Columns:
        """Its columns after `rounds` rounds, given how often each client was selected by then."""
        return {}

    def protect(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        """The uploads as the server may see them. `delta [C, W]` is all that each client sends, not its delta alone."""
        return uploads, memory

    def example_columns(self, row: Columns) -> Columns:
        """Those of a round's columns `row` that are other for one example than for what its ledger counts."""
        return {}

    def client_columns(self, owner: np.ndarray, memory: Memory, ctx: Context) -> dict[str, np.ndarray]:
        """The epsilon of each of these clients so far, `[n]` by the name of a column of clients.csv."""
        return {}
