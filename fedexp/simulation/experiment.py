"""What was asked: the frozen root of a run, refused as a whole before anything is loaded."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fedexp.core.errors import ConfigError
from fedexp.core.part import Part, Range, option
from fedexp.parts.aggregator.contract import Aggregator
from fedexp.parts.attack.contract import Attack
from fedexp.parts.audit.contract import Audit
from fedexp.parts.clustering.contract import Clustering
from fedexp.parts.dataset.contract import Dataset
from fedexp.parts.features.contract import Features
from fedexp.parts.federation.contract import Federation
from fedexp.parts.fleet.contract import Fleet
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.model.contract import Model
from fedexp.parts.pre_aggregation.contract import PreAggregation
from fedexp.parts.pretraining.contract import Pretraining
from fedexp.parts.privacy.contract import Privacy
from fedexp.parts.selector.contract import Selector
from fedexp.parts.server_optimizer.contract import ServerOptimizer
from fedexp.parts.stop.contract import Stop
from fedexp.parts.tracker.contract import Tracker
from fedexp.scoring.evaluation import Evaluation
from fedexp.simulation import compatibility as several_models
from fedexp.training.engine import Engine


@dataclass(frozen=True, kw_only=True)
class Scenario(Part):
    """The numbers that several parts share."""

    clients: Annotated[int, Range(1)]
    participants: Annotated[int, Range(1)]
    malicious: Annotated[int, Range(0)] = 0
    byzantine: Annotated[int, Range(0)] = 0
    public_fraction: Annotated[float, Range(0, 1, high_open=True)] = 0.0

    def public_count(self, examples: int) -> int:
        """How many of so many training examples are the server's public data."""
        return int(self.public_fraction * examples + 1e-9)


@dataclass(frozen=True, kw_only=True)
class Experiment(Part):
    """One run."""

    seed: Annotated[int, Range(0)]
    rounds: Annotated[int, Range(1)]
    data_dir: Path
    scenario: Scenario
    evaluation: Evaluation
    checkpoint_s: Annotated[float, Range(0)]
    keep_states: Annotated[int, Range(0)] = 0
    pictures: bool = True
    dataset: Dataset
    federation: Federation
    features: Features = field(default_factory=Features)  # like privacy: runs of before it was there are resumed
    model: Model
    pretraining: Pretraining = field(default_factory=Pretraining)  # likewise
    local: LocalRule
    selector: Selector
    fleet: Fleet
    attack: Attack
    clustering: Clustering = field(default_factory=Clustering)
    privacy: Privacy = field(default_factory=Privacy)  # runs of before it was there are resumed without
    audit: Audit = field(default_factory=Audit)
    pre_aggregation: PreAggregation
    aggregator: Aggregator
    server_optimizer: ServerOptimizer
    engine: Engine
    stop: Stop
    tracker: Tracker = field(default_factory=Tracker)  # likewise

    @property
    def needs_validation(self) -> bool:
        """Whether some part asks for the server's validation data."""
        parts = (self.selector, self.aggregator, self.stop)
        return self.evaluation.validation or any(part.needs_validation for part in parts)

    @property
    def holds_public(self) -> bool:
        """Whether the server has public data of its own."""
        return self.scenario.public_fraction > 0 or self.federation.feeds_server

    def refuse(self) -> None:
        """Raises ConfigError where the parts, the machine or the files cannot work together; loads nothing."""
        if self.stop.needs_clock and not self.fleet.simulates:
            raise ConfigError(
                "stop=simulated_time needs a simulated clock, but the fleet has none; set fleet=simulated"
            )
        if self.stop.needs_privacy and not self.privacy.guarantees:
            raise ConfigError(
                "stop=privacy_budget needs a ledger, but nothing is protected; set privacy=dp_sgd or another"
            )
        if self.selector.needs_fleet and not self.fleet.simulates:
            raise ConfigError(
                f"selector={option(self.selector)} asks for the clients' machines and links, but the fleet has "
                "none; set fleet=simulated"
            )
        clients = self.federation.known_clients()
        if clients is not None and self.scenario.malicious > clients:
            raise ConfigError(
                f"scenario.malicious must be at most the number of clients, {clients}, got {self.scenario.malicious}; "
                "lower it or raise scenario.clients"
            )
        if self.aggregator.keeps_rows and self.pre_aggregation.averages_rows:
            raise ConfigError(
                f"aggregator={option(self.aggregator)} remembers the row of each client, but pre_aggregation="
                f"{option(self.pre_aggregation)} mixes the rows of several; use pre_aggregation=none"
            )
        self.refuse_shares()
        self.refuse_new_layouts()
        self.refuse_leaks()
        several_models.refuse(self)
        self.refuse_single_rows()
        self.refuse_blind_audits()
        self.fleet.refuse(clients)
        self.engine.refuse()
        self.tracker.refuse()
        self.dataset.require(self.data_dir)
        self.refuse_data()

    def refuse_data(self) -> None:
        """Raises ConfigError where a part cannot work with what is known of the data before it is loaded."""
        facts = self.dataset.facts(self.data_dir)
        if self.scenario.public_fraction and not self.scenario.public_count(facts.train_size):
            raise ConfigError(
                f"scenario.public_fraction must give at least one of the {facts.train_size} training examples, got "
                f"{self.scenario.public_fraction:g}; raise it"
            )
        self.federation.refuse(facts)
        self.attack.refuse(facts)
        self.audit.refuse(facts)
        seen = self.features.facts(facts)
        self.model.refuse(seen)
        self.local.refuse(self.model, seen)
        self.aggregator.refuse(self.model, seen)
        self.privacy.refuse(self.model, seen)

    def refuse_shares(self) -> None:
        """Raises ConfigError where the server would leave the clients nothing, or has nothing itself to learn from."""
        validation = self.evaluation.validation_fraction if self.needs_validation else 0.0
        if self.scenario.public_fraction + validation >= 1:
            raise ConfigError(
                f"scenario.public_fraction={self.scenario.public_fraction:g} and evaluation.validation_fraction="
                f"{validation:g} must leave examples to the clients, but make up all of them; lower one of them"
            )
        for name in ("features", "pretraining", "clustering"):
            part = getattr(self, name)
            if part.needs_public and not self.holds_public:
                raise ConfigError(
                    f"{name}={option(part)} needs public data of the server, but it has none; set "
                    "scenario.public_fraction=0.2, or federation.server_persons where federation=subject"
                )

    def refuse_leaks(self) -> None:
        """Raises ConfigError where a part learns of clients what the privacy does not cover, or undoes its noise."""
        if not self.privacy.guarantees:
            return
        who = f"privacy={option(self.privacy)}"
        others = {"selector": "random", "aggregator": "fedavg", "clustering": "none"}
        for name, way_out in others.items():
            part = getattr(self, name)
            if part.reveals:
                raise ConfigError(
                    f"{who} covers what is trained, but {name}={option(part)} learns {part.reveals}; use "
                    f"{name}={way_out}"
                )
        if not self.privacy.noises_mean:
            return
        mean = self.aggregator.averages and self.aggregator.weighting == "uniform"
        if not mean or self.pre_aggregation.averages_rows:
            raise ConfigError(
                f"{who} noises the mean of the clipped updates, each with the same share; use aggregator=fedavg "
                "aggregator.weighting=uniform pre_aggregation=none"
            )
        if self.selector.averages_models:
            raise ConfigError(
                f"{who} noises the sum of the updates, but selector={option(self.selector)} looks at those of single "
                "clients; use selector=random"
            )

    def refuse_new_layouts(self) -> None:
        """Raises ConfigError where the aggregator changes the global model's shape and another part needs it kept."""
        if self.aggregator.keeps_layout:
            return
        changes = f"but aggregator={option(self.aggregator)} changes the widths of its hidden layers"
        if self.server_optimizer.needs_layout:
            raise ConfigError(
                f"server_optimizer={option(self.server_optimizer)} compares each global model with the one before, "
                f"{changes}; use server_optimizer=replace"
            )
        if self.pre_aggregation.averages_rows:
            raise ConfigError(
                f"pre_aggregation={option(self.pre_aggregation)} mixes the rows of clients, {changes}, and each client "
                "holds others of their units; use pre_aggregation=none"
            )
        if self.local.keeps_rows:
            raise ConfigError(
                f"local={option(self.local)} keeps a row of every client from round to round, {changes}, and another "
                "round's row may hold other units; use local=sgd"
            )
        if self.clustering.divides:
            raise ConfigError(
                f"clustering={option(self.clustering)} averages and compares models of one shape, {changes}; use "
                "clustering=none"
            )
        if self.selector.averages_models:
            raise ConfigError(
                f"selector={option(self.selector)} averages the global model with the clients', {changes}; use "
                "selector=random"
            )

    def refuse_single_rows(self) -> None:
        """Raises ConfigError where nobody sees the row of a single client and another part needs or tells it."""
        if not self.aggregator.hides_rows:
            return
        hides = f"but aggregator={option(self.aggregator)} shows nobody the row of a single client"
        if self.pre_aggregation.averages_rows:
            raise ConfigError(
                f"pre_aggregation={option(self.pre_aggregation)} mixes the rows of clients, {hides}; use "
                "pre_aggregation=none"
            )
        if self.selector.averages_models:
            raise ConfigError(
                f"selector={option(self.selector)} compares averages of some clients' models with others, {hides}; use "
                "selector=random"
            )
        if self.local.rows_sent > 1:
            raise ConfigError(
                f"local={option(self.local)} sends the server a second row that tells the first, {hides}; use local=sgd"
            )

    def refuse_blind_audits(self) -> None:
        """Raises ConfigError where the audit looks at uploads that are not what is promised to be private."""
        if not self.audit.needs_uploads:
            return
        audit = f"audit={option(self.audit)} audit.score=uploads"
        if self.privacy.guarantees and self.privacy.example_clip is None:
            raise ConfigError(
                f"{audit} looks for single examples in what is trained, but privacy={option(self.privacy)} protects it "
                "later; use audit.score=loss or privacy=dp_sgd"
            )
        if not self.aggregator.keeps_layout:
            raise ConfigError(
                f"{audit} compares what a client sends with gradients of the global model, but aggregator="
                f"{option(self.aggregator)} changes the widths of its hidden layers; use audit.score=loss"
            )
