"""The contract of pacings: when clients begin, and when the server takes a step.

Who finishes when follows from the fleet and not from the training. So the timetable of a step is worked out first, and
all that arrives in it is then trained as one stack of rows that began with different versions of the model.
"""

from dataclasses import dataclass, field

import numpy as np
import torch

from fedexp.core.part import Part
from fedexp.core.values import Memory, Plan, Uploads, Weights
from fedexp.parts.context import Context


@dataclass(frozen=True)
class Arrivals:
    """Who arrives in a step of the server: their `plan`.

    `begun [C]` is the step in which each was sent its model, `versions` the models of those steps, by step (the present
    one may lack). `seconds` is how long the step took (None: the fleet says), `began [b]` who was sent the model in it
    (None: those that arrive). `discarded` counts uploads that arrived, too, but are thrown away.
    """

    plan: Plan
    begun: np.ndarray
    versions: dict = field(default_factory=dict)
    seconds: float | None = None
    began: np.ndarray | None = None
    discarded: int = 0


class Pacing(Part):
    """The base: the server waits for all that it has asked in a step."""

    slows_server = False  # whether it lowers the server's rate in some steps
    overlaps = False  # whether clients may train on while the server steps
    discards_uploads = False  # whether it throws away some that were sent
    moves_uploads = False  # whether an upload with the present model may be another than its client's model
    has_period = False  # whether a step takes always the same time
    needs_fleet = False  # whether it does nothing useful where all clients take the same time
    prefers_fast = False  # whether who counts in a step depends on how fast clients are

    def refuse(self, clients: int | None) -> None:
        """Raises ConfigError where there are too few clients (None: not known yet)."""

    @property
    def idle_keys(self) -> dict[str, str]:
        """Those of its keys that were set and do nothing, each with the key beside which it does nothing."""
        return {}

    @property
    def client_columns(self) -> tuple[str, ...]:
        """The names of what it tells of each upload in clients.csv."""
        return ()

    def client_values(self, owner: np.ndarray, memory: Memory) -> dict[str, np.ndarray]:
        """What it tells of the uploads of `owner [C]` in a step, by these names, `[C]` each."""
        return {}

    def describe(self, clients: int, usual: str) -> str:
        """Who takes part when, in words, given the number of clients and what is said where all are waited for."""
        return usual

    def most_uploads(self, participants: int) -> int:
        """How many uploads a step has at most, where so many clients are chosen in it."""
        return participants

    def most_versions(self, clients: int) -> int:
        """How many earlier models so many clients can train on at most while the server steps."""
        return 0

    def versions(self, memory: Memory) -> dict[str, torch.Tensor]:
        """The models `[D]` that clients train on after a step, by the step in which they were sent."""
        return {}

    def availability(self, memory: Memory, clients: int, loses: bool = False) -> tuple[np.ndarray, int | None]:
        """The clients `[b]` that still train, ascending, and how many others may begin (None: the selector says).

        `loses`: whether clients may drop out or go before they deliver.
        """
        return np.zeros(0, np.int64), None

    def due(self, plan: Plan, model: Weights, memory: Memory, ctx: Context) -> tuple[Arrivals, Memory]:
        """Who arrives in this step, if the clients of `plan` are asked, in this order, to begin with `model`."""
        return Arrivals(plan, np.full(len(plan.owner), ctx.round)), memory

    def server_rate(self, lr: float, memory: Memory) -> float:
        """The server's rate in this step, of which `lr` is the scheduled one."""
        return lr

    def discount(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        """The uploads that arrived, changed as their staleness asks for."""
        return uploads, memory
