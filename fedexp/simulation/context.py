"""The round's context that parts see; `fedexp.parts.context` documents its members."""

from dataclasses import dataclass, field

import numpy as np

from fedexp.core.random_streams import stream
from fedexp.core.values import Layout, Plan, Weights
from fedexp.simulation.besides import Besides
from fedexp.simulation.views import (
    AuditAnswers,
    FleetAnswers,
    PublicAnswers,
    SurveyAnswers,
    TrafficAnswers,
    ValidationAnswers,
)
from fedexp.simulation.world import World


def at(world: World, number: int, models: tuple[Weights, ...] | None = None) -> "RoundContext":
    """The context of the round `number` that begins with these models (the initial one if not given)."""
    return RoundContext(world, number, models or (world.first,))


def asked_besides(ctx: "RoundContext") -> Besides:
    """The round's count of messages besides training; for the round only, not for parts."""
    return ctx._besides


@dataclass(frozen=True)
class RoundContext:
    """One round's view of the world; parts see this and not the world itself."""

    _world: World
    round: int
    models: tuple[Weights, ...]
    _besides: Besides = field(default_factory=Besides)

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
        return self._world.sizes

    def rng(self, *name: str | int) -> np.random.Generator:
        return stream(self._world.exp.seed, self.round, *name)

    def run_rng(self, *name: str | int) -> np.random.Generator:
        return stream(self._world.exp.seed, *name)

    def plan(self, owner: np.ndarray) -> Plan:
        return Plan(owner, tuple(self._world.partition.shard(int(client)) for client in owner))

    def malicious(self, owner: np.ndarray) -> np.ndarray:
        return np.isin(owner, self._world.malicious)

    def losses(self, owner: np.ndarray, power: int = 1) -> np.ndarray:
        self._besides.judging(self.models[0], owner)
        return self._world.client_losses(self.models[0], self.plan(owner), power)

    @property
    def survey(self) -> SurveyAnswers:
        return SurveyAnswers(self._world, self, self._besides)

    @property
    def fleet(self) -> FleetAnswers:
        return FleetAnswers(self._world, self, self._besides)

    @property
    def traffic(self) -> TrafficAnswers:
        return TrafficAnswers(self._world)

    @property
    def validation(self) -> ValidationAnswers:
        return ValidationAnswers(self._world)

    @property
    def public(self) -> PublicAnswers:
        return PublicAnswers(self._world)

    @property
    def audit(self) -> AuditAnswers:
        return AuditAnswers(self._world, self.models[0])
