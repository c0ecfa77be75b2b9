"""What parts may ask of the clients' machines, links and messages: `ctx.fleet` and `ctx.traffic`.

`fedexp.parts.questions` says what each question means.
"""

from dataclasses import dataclass

import numpy as np

from fedexp.core.client_resources import Journeys, Resources
from fedexp.core.random_streams import client_draws
from fedexp.parts.context import Context
from fedexp.parts.local.contract import LocalRule
from fedexp.simulation.context_views import ExtraMessages
from fedexp.simulation.personal_columns import private_columns
from fedexp.simulation.presence import StepStart
from fedexp.simulation.world import World


@dataclass(frozen=True)
class FleetQueries:
    """The clients' machines, links and work."""

    _world: World
    _ctx: Context
    _extra_messages: ExtraMessages
    _step_start: StepStart

    @property
    def busy(self) -> np.ndarray:
        return self._step_start.busy

    @property
    def capacity(self) -> int | None:
        return self._step_start.capacity

    @property
    def now_s(self) -> float:
        return self._step_start.now_s

    @property
    def waited_s(self) -> float:
        return self._step_start.waited_s

    def stays_s(self, owner: np.ndarray) -> np.ndarray:
        presence = self._world.presence
        if presence is None or not self._world.exp.availability.interrupts:
            return np.full(len(owner), np.inf)
        return presence.stays_s(owner, self.now_s)

    @property
    def simulates(self) -> bool:
        return self._world.exp.fleet.simulates

    def resources(self, owner: np.ndarray) -> Resources:
        return self._world.exp.fleet.resources(owner, self._ctx)

    @property
    def shares_link(self) -> bool:
        return self._world.exp.fleet.shares_link

    @property
    def idle_s(self) -> float:
        return self._world.exp.fleet.idle_s

    def journeys(self, owner: np.ndarray) -> Journeys:
        return self._world.exp.fleet.journeys(owner, self._ctx)

    def draws(self, *name: str, owner: np.ndarray) -> np.ndarray:
        return client_draws(self._world.exp.seed, self._ctx.round, *name, owner=owner, clients=self._ctx.clients)

    def run_draws(self, *name: str, owner: np.ndarray) -> np.ndarray:
        return client_draws(self._world.exp.seed, *name, owner=owner, clients=self._ctx.clients)

    @property
    def workload(self) -> LocalRule:
        return self._world.exp.local

    def epochs(self, examples: np.ndarray, owner: np.ndarray | None = None) -> np.ndarray:
        if owner is None or not isinstance(self.workload.epochs, tuple):
            return self.workload.passes(examples)
        drawn = [self.workload.with_drawn_epochs(client, self._ctx.rng) for client in owner.tolist()]
        return np.array([float(rule.passes(examples[:1])[0]) for rule in drawn])

    @property
    def reports_losses(self) -> bool:
        return self._world.exp.selector.asks_participants

    def judged_examples(self, owner: np.ndarray) -> np.ndarray:
        holds_out = self._world.exp.local.judging_fraction
        return (self._world.judging if holds_out else self._world.partition).sizes[owner]

    @property
    def judging_s(self) -> float:
        return self._world.exp.fleet.judging_s(self._ctx)

    @property
    def evaluators(self) -> tuple[np.ndarray, ...]:
        return self._extra_messages.evaluators


@dataclass(frozen=True)
class TrafficQueries:
    """The sizes of a round's messages."""

    _world: World

    @property
    def private_columns(self) -> np.ndarray:
        return private_columns(self._world.exp, self._world.layout)

    @property
    def extra_rows(self) -> tuple[str, ...]:
        return self._world.exp.local.extra_rows

    @property
    def sent_entries(self) -> int:
        trainable = self._world.layout.parameters
        return trainable - int((self.private_columns < trainable).sum())

    @property
    def megabytes(self) -> float:
        return (self._world.layout.size - len(self.private_columns)) * 4 / 1e6

    @property
    def download_bits(self) -> float:
        return self.sent_entries * (1 + len(self.extra_rows)) * 32.0

    @property
    def upload_ratio(self) -> float:
        return self._world.exp.upload_bytes(self.sent_entries * (1 + len(self.extra_rows))) * 8 / self.download_bits

    @property
    def example_bytes(self) -> int:
        example = self._world.train.x[0]
        return example.numel() * example.element_size()
