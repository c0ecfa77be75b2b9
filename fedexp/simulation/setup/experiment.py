"""The frozen configuration of a run."""

from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from fedexp.config import roles
from fedexp.core.errors import ConfigError
from fedexp.core.part import Part, Positive, Range
from fedexp.maths.curve_metrics import metric_name
from fedexp.parts.aggregator.contract import Aggregator
from fedexp.parts.attack.contract import Attack
from fedexp.parts.audit.contract import Audit
from fedexp.parts.augment.contract import Augment
from fedexp.parts.availability.contract import Availability
from fedexp.parts.clustering.contract import Clustering
from fedexp.parts.dataset.contract import Dataset
from fedexp.parts.features.contract import Features
from fedexp.parts.federation.contract import Federation
from fedexp.parts.fleet.contract import Fleet
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.loss.contract import Loss
from fedexp.parts.loss.cross_entropy import CrossEntropy
from fedexp.parts.model.contract import Model
from fedexp.parts.pacing.contract import Pacing
from fedexp.parts.pre_aggregation.contract import PreAggregation
from fedexp.parts.pretraining.contract import Pretraining
from fedexp.parts.privacy.contract import Privacy
from fedexp.parts.schedule.contract import Schedule
from fedexp.parts.selector.contract import Selector
from fedexp.parts.server_optimizer.contract import ServerOptimizer
from fedexp.parts.stop.contract import Stop
from fedexp.parts.tracker.contract import Tracker
from fedexp.parts.workload import Epochs
from fedexp.scoring.evaluation import Evaluation
from fedexp.training.engine.contract import Engine


class Scenario(Part):
    """The numbers that several parts share."""

    clients: Annotated[int, Range(1)]
    participants: Annotated[int, Range(1)] = field(
        metadata={"hint": "a share is selector.fraction=0.1 selector.count=null"}
    )
    local_epochs: Epochs = 1
    local_lr: Annotated[float, Positive] = 0.1
    malicious: Annotated[int, Range(0)] = 0
    byzantine: Annotated[int, Range(0)] = 0
    malicious_hold_data: bool = True
    public_fraction: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    training: Literal["local", "central"] | None = None  # None: federated

    @property
    def trains_alone(self) -> bool:
        """Whether every client trains alone: nothing is sent, and nothing averaged."""
        return self.training == "local"

    @property
    def pools_data(self) -> bool:
        """Whether one client trains on the examples of all."""
        return self.training == "central"

    @property
    def copies(self) -> bool:
        """Whether malicious clients train on copies of what honest ones hold, and have no share of the data."""
        return self.malicious > 0 and not self.malicious_hold_data

    def public_count(self, examples: int) -> int:
        """How many of so many training examples are the server's public data."""
        return int(self.public_fraction * examples + 1e-9)


class Experiment(Part):
    """One run: its numbers, and a part of every role. Parts of user-defined roles are in `extra_parts`."""

    seed: Annotated[int, Range(0, 2**63 - 1)]
    rounds: Annotated[int, Range(1)]
    data_dir: Path
    scenario: Scenario
    evaluation: Evaluation
    checkpoint_s: Annotated[float, Range(0, infinite=True)]
    keep_states: Annotated[int, Range(0)] = 0
    pictures: bool = True
    dataset: Dataset
    federation: Federation
    features: Features = field(default_factory=Features)  # a default: older runs have no such key and are resumed
    augment: Augment = field(default_factory=Augment)
    model: Model
    pretraining: Pretraining = field(default_factory=Pretraining)
    loss: Loss = field(default_factory=CrossEntropy)
    local: LocalRule
    schedule: Schedule = field(default_factory=Schedule)
    selector: Selector
    fleet: Fleet
    availability: Availability = field(default_factory=Availability)
    pacing: Pacing = field(default_factory=Pacing)
    attack: Attack
    clustering: Clustering = field(default_factory=Clustering)
    privacy: Privacy = field(default_factory=Privacy)
    audit: Audit = field(default_factory=Audit)
    pre_aggregation: PreAggregation
    aggregator: Aggregator
    server_optimizer: ServerOptimizer
    server_schedule: Schedule = field(default_factory=Schedule)
    engine: Engine
    stop: Stop
    tracker: Tracker = field(default_factory=Tracker)
    extra_parts: tuple = ()  # (role, part)

    @classmethod
    def config_keys(cls) -> list[str]:
        field_names = [field.name for field in fields(cls) if field.name != "extra_parts"]
        return [*field_names, *(role.name for role in cls._roles_without_field())]

    @classmethod
    def by_field(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        extra = {
            role.name: values[role.name] if role.name in values else role.kind() for role in cls._roles_without_field()
        }
        field_values = {name: value for name, value in values.items() if name not in extra}
        return field_values | {"extra_parts": tuple(extra.items())}

    @classmethod
    def _roles_without_field(cls) -> list[roles.Role]:
        field_names = {field.name for field in fields(cls)}
        return [role for role in roles.all_roles() if role.name not in field_names]

    def check(self) -> None:
        for role in self._roles_without_field():
            if not isinstance(part := self.part(role.name), role.kind):
                raise ConfigError(f"{role.name} must be a {role.kind.__name__}, got {part!r}")

    def part(self, role: str) -> Any:
        """The part of a role."""
        extra = dict(self.extra_parts)
        return extra[role] if role in extra else getattr(self, role)

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Every role's name and its part, in the order of the table."""
        return ((role.name, self.part(role.name)) for role in roles.all_roles())

    @property
    def needs_validation(self) -> bool:
        """Whether some part asks for validation data."""
        return self.evaluation.validation or any(getattr(part, "needs_validation", False) for _, part in self.parts())

    @property
    def server_validation_share(self) -> float:
        """The share of the training examples that the server keeps for validation."""
        return self.evaluation.validation_fraction if self._validates(at_clients=False) else 0.0

    @property
    def client_validation_share(self) -> float:
        """The share of what it would train on that each client sets apart for validation."""
        return self.evaluation.validation_fraction if self._validates(at_clients=True) else 0.0

    def _validates(self, *, at_clients: bool) -> bool:
        return self.needs_validation and self.evaluation.validates_at_clients == at_clients

    @property
    def metric_entries(self) -> tuple[str, ...]:
        """What is measured besides the loss, the main metric first: names of ours, or functions `module:function`."""
        return self.evaluation.metrics or self.loss.metrics

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of what is measured besides the loss, the main metric first."""
        return tuple(map(metric_name, self.metric_entries))

    def usual_participants(self, clients: int) -> int:
        """How many of so many clients take part in a round, as the selector says, else as `scenario` does."""
        selected = self.selector.clients_per_round(clients)
        return min(self.scenario.participants, clients) if selected is None else selected

    def upload_bytes(self, entries: int) -> float:
        """Bytes of a client's message of so many entries."""
        ratio = prod(getattr(self.part(role.name), "ratio", 1) for role in roles.roles_at("leaving"))
        return self.aggregator.upload_bytes(entries) * ratio

    @property
    def honest_federation(self) -> Federation:
        """The federation over the clients that get a share of the data."""
        return self.federation.without(self.scenario.malicious if self.scenario.copies else 0)

    @property
    def has_clock(self) -> bool:
        """Whether simulated time passes."""
        return self.fleet.simulates or self.pacing.overlaps

    @property
    def loses_clients(self) -> bool:
        """Whether some who are asked may drop out, or go."""
        return self.fleet.loses_clients or self.availability.changes

    @property
    def loses_uploads(self) -> bool:
        """Whether some who are asked may not deliver: they drop out, go, or are too late."""
        return self.loses_clients or self.fleet.deadline_s is not None or self.selector.needs_fleet

    @property
    def holds_public(self) -> bool:
        """Whether the server has public data of its own."""
        return self.scenario.public_fraction > 0 or self.federation.feeds_server
