"""The round's context that parts see; `fedexp.parts.context` documents its members."""

from dataclasses import dataclass, field, replace

import numpy as np

from fedexp.core.random_streams import stream
from fedexp.core.values import Layout, Plan, State, Weights
from fedexp.simulation.context_views import (
    AuditQueries,
    ClientQueries,
    ExtraMessages,
    PublicQueries,
    ValidationQueries,
    received_losses,
)
from fedexp.simulation.fleet_queries import FleetQueries, TrafficQueries
from fedexp.simulation.presence import StepStart, begin_step
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World


def make_context(world: World, number: int, models: tuple[Weights, ...] | None = None) -> "RoundContext":
    """The context of the round `number` that begins with these models (the initial one if not given)."""
    models = models or (world.first,)
    audit = AuditQueries(world, models[0])
    return RoundContext(world, number, models, TrafficQueries(world), ValidationQueries(world), audit)


def begin_round(exp: Experiment, world: World, state: State) -> "RoundContext":
    """The context of the round that follows on a state, of which some clients may still be busy.

    Raises:
        RunError: no client will ever be there again.
    """
    memory = state.memory.get("pacing", {})
    in_flight, capacity = exp.pacing.availability(memory, world.partition.clients, exp.loses_clients)
    step_start = begin_step(world.presence, state.sim_s, in_flight, capacity)
    return replace(make_context(world, state.round + 1, state.models), _step_start=step_start)


def extra_messages(ctx: "RoundContext") -> ExtraMessages:
    """The round's count of messages besides training; for the round only, not for parts."""
    return ctx._extra_messages


@dataclass(frozen=True)
class RoundContext:
    """One round's view of the world; parts see this and not the world itself."""

    _world: World
    round: int
    models: tuple[Weights, ...]
    traffic: TrafficQueries
    validation: ValidationQueries
    audit: AuditQueries
    _step_start: StepStart = field(default_factory=StepStart)
    _extra_messages: ExtraMessages = field(default_factory=ExtraMessages)

    @property
    def first(self) -> Weights:
        return self._world.first

    @property
    def layout(self) -> Layout:
        return self._world.layout

    @property
    def clients(self) -> int:
        return self._world.partition.clients

    @property
    def sizes(self) -> np.ndarray:
        return self._world.partition.sizes

    def rng(self, *name: str | int) -> np.random.Generator:
        return stream(self._world.exp.seed, self.round, *name)

    def run_rng(self, *name: str | int) -> np.random.Generator:
        return stream(self._world.exp.seed, *name)

    def plan(self, owner: np.ndarray) -> Plan:
        return Plan(owner, tuple(map(self._world.shard, owner.tolist())))

    def malicious(self, owner: np.ndarray) -> np.ndarray:
        return np.isin(owner, self._world.malicious)

    def losses(self, owner: np.ndarray, power: int = 1) -> np.ndarray:
        return received_losses(self.clients_data, self.models[0], owner, power)

    @property
    def clients_data(self) -> ClientQueries:
        return ClientQueries(self._world, self, self._extra_messages)

    @property
    def public(self) -> PublicQueries:
        return PublicQueries(self._world, self)

    @property
    def fleet(self) -> FleetQueries:
        return FleetQueries(self._world, self, self._extra_messages, self._step_start)
