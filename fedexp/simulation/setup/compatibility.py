"""Refuses combinations that cannot work: a table of pairs of parts, then checks of numbers, files and data."""

from dataclasses import dataclass
from typing import Any

from fedexp.config import roles
from fedexp.core.errors import ConfigError
from fedexp.core.part import describe_choice, option
from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.contract import Facts
from fedexp.scoring import metrics
from fedexp.simulation.setup.experiment import Experiment


@dataclass(frozen=True)
class Incompatibility:
    """A pair of parts that exclude each other: of `role` with `flag`, and of `other_role` with `other_flag`.

    Flags are those of their contracts, with `not` before them where they must be false. `because` and `but` say in
    words what is so on either side; `{part.FLAG}` stands for what a flag says. `use` is what to write instead.
    """

    role: str
    flag: str
    because: str
    other_role: str
    other_flag: str
    but: str
    use: str

    def holds(self, exp: Experiment) -> bool:
        """Whether an experiment has both parts of this pair."""
        return has_flag(_part_of(exp, self.role), self.flag) and has_flag(
            _part_of(exp, self.other_role), self.other_flag
        )

    def sentence(self, exp: Experiment) -> str:
        """The error message: why the two exclude each other, and what to use instead."""
        first, second = _describe(exp, self.role, self.flag), _describe(exp, self.other_role, self.other_flag)
        because = self.because.format(part=_part_of(exp, self.role))
        return f"{first} {because}, but {second} {self.but.format(part=_part_of(exp, self.other_role))}; use {self.use}"


PUBLIC = "scenario.public_fraction=0.2, or federation.server_persons where federation=subject"
WIDTHS = "changes the widths of its hidden layers"
SETTINGS = {("scenario", "copies"): "scenario.malicious_hold_data=false"}  # flags that are no keys
HIDES = "shows nobody the row of a single client"
# fmt: off
ROWS = tuple(Incompatibility(*row) for row in (
    ("stop", "needs_clock", "needs a simulated clock", "fleet", "not simulates", "has none", "fleet=simulated"),
    ("stop", "needs_privacy", "needs a ledger", "privacy", "not guarantees", "keeps none",
     "privacy=dp_sgd or another"),
    ("selector", "needs_fleet", "asks for the clients' machines and links", "fleet", "not simulates", "has none",
     "fleet=simulated"),
    ("features", "needs_public", "needs public data of the server", "", "not holds_public", "has none", PUBLIC),
    ("pretraining", "needs_public", "needs public data of the server", "", "not holds_public", "has none", PUBLIC),
    ("clustering", "needs_public", "needs public data of the server", "", "not holds_public", "has none", PUBLIC),
    ("aggregator", "keeps_rows", "remembers the row of each client", "pre_aggregation", "averages_rows",
     "mixes the rows of several", "pre_aggregation=none"),
    ("server_optimizer", "needs_layout", "compares each global model with the one before", "aggregator",
     "not keeps_layout", WIDTHS, "server_optimizer=replace"),
    ("server_schedule", "moves", "changes the server's rate from round to round", "server_optimizer", "not has_rate",
     "has none", "server_optimizer=momentum server_optimizer.beta=0"),
    ("pre_aggregation", "averages_rows", "mixes the rows of clients", "aggregator", "not keeps_layout",
     WIDTHS + ", and each client holds others of their units", "pre_aggregation=none"),
    ("local", "keeps_rows", "keeps a row of every client from round to round", "aggregator", "not keeps_layout",
     WIDTHS + ", and another round's row may hold other units", "local=sgd"),
    ("clustering", "has_clusters", "averages and compares models of one shape", "aggregator", "not keeps_layout",
     WIDTHS, "clustering=none"),
    ("selector", "averages_models", "averages the global model with the clients'", "aggregator", "not keeps_layout",
     WIDTHS, "selector=random"),
    ("audit", "needs_uploads", "with audit.score=uploads compares what is sent with gradients of the global model",
     "aggregator", "not keeps_layout", WIDTHS, "audit.score=loss"),
    ("privacy", "guarantees", "covers what is trained", "selector", "reveals", "learns {part.reveals}",
     "selector=random"),
    ("privacy", "guarantees", "covers what is trained", "aggregator", "reveals", "learns {part.reveals}",
     "aggregator=fedavg"),
    ("privacy", "guarantees", "covers what is trained", "clustering", "reveals", "learns {part.reveals}",
     "clustering=none"),
    ("privacy", "noises_mean", "noises the mean of the clipped updates, each with the same share", "aggregator",
     "not averages_uniformly", "is no such mean", "aggregator=fedavg aggregator.weighting=uniform"),
    ("privacy", "noises_mean", "noises the mean of the clipped updates, each with the same share", "pre_aggregation",
     "averages_rows", "mixes them before", "pre_aggregation=none"),
    ("privacy", "noises_mean", "noises the mean of the clipped updates", "selector", "averages_models",
     "looks at those of single clients", "selector=random"),
    ("aggregator", "normalises", "divides each update by the weights of its gradients", "local", "not is_gradient_sum",
     "{part.no_gradient_sum}", "local=sgd local.worker_momentum=false"),
    ("aggregator", "normalises", "divides the update of each client by how much it trained", "pre_aggregation",
     "averages_rows", "mixes the rows of several", "pre_aggregation=none"),
    ("pre_aggregation", "averages_rows", "mixes the rows of clients", "aggregator", "hides_rows", HIDES,
     "pre_aggregation=none"),
    ("selector", "averages_models", "compares averages of some clients' models with others", "aggregator",
     "hides_rows", HIDES, "selector=random"),
    ("local", "extra_rows", "sends the server a second row that tells the first", "aggregator", "hides_rows",
     HIDES, "local=sgd"),
    ("local", "cost_needs_client_state", "makes an example's cost depend on other models or examples", "privacy",
     "example_clip", "protects single examples by clipping what each of them does", "local=sgd"),
    ("local", "cost_needs_client_state", "makes an example's cost depend on other models or examples", "audit",
     "needs_uploads", "with audit.score=uploads compares what is sent with gradients of single examples",
     "audit.score=loss"),
    ("codec", "is_lossy", "rounds what clients send", "aggregator", "hides_rows", "adds it up as whole numbers",
     "codec=none"),
    ("codec", "is_lossy", "rounds what clients send", "privacy", "covers_uploads", "clips and noises it afterwards",
     "codec=none"),
    ("codec", "keeps_rows", "keeps a row of every client from round to round", "aggregator", "not keeps_layout",
     WIDTHS + ", and another round's row may hold other units", "codec=none"),
    ("audit", "needs_uploads", "with audit.score=uploads looks for single examples in what is trained", "privacy",
     "covers_uploads", "protects it later", "audit.score=loss or privacy=dp_sgd"),
    ("audit", "needs_uploads", "with audit.score=uploads compares what is sent with gradients of one global model",
     "clustering", "has_clusters", "has several", "audit.score=loss"),
    ("evaluation", "local_models", "follows one global model", "clustering", "has_clusters", "has several",
     "evaluation.personal_fraction"),
    ("selector", "needs_one_model", "{part.needs_one_model}", "clustering", "has_clusters", "has several",
     "selector=random"),
    ("aggregator", "keeps_rows", "counts every client that it never heard of in one global model", "clustering",
     "has_clusters", "has several", "aggregator=geometric_median"),
    ("scenario", "copies", "divides all data over the honest clients", "federation", "not resizable",
     "makes clients of its own number", "federation=iid"),
    ("scenario", "copies", "gives malicious clients copies of the examples of others", "privacy", "guarantees",
     "counts what one client tells of an example", "scenario.malicious_hold_data=true"),
))
# fmt: on


def has_flag(part: Any, flag: str) -> bool:
    """Whether a part has a flag; `not FLAG` asks for the opposite."""
    return bool(getattr(part, flag.removeprefix("not "))) != flag.startswith("not ")


def refuse(exp: Experiment) -> None:
    """Raises ConfigError where the parts, the machine or the files cannot work together; loads nothing."""
    for row in ROWS:
        if row.holds(exp):
            raise ConfigError(row.sentence(exp))
    clients = training_clients(exp)
    refuse_numbers(exp, clients)
    exp.clustering.refuse(clients)
    exp.fleet.refuse(clients)
    exp.engine.refuse()
    exp.tracker.refuse()
    exp.dataset.require(exp.data_dir)
    refuse_data(exp)


def training_clients(exp: Experiment) -> int | None:
    """How many clients rounds have; None where only the data knows.

    Raises:
        ConfigError: no honest client would have data.
    """
    clients, copies = exp.federation.known_clients(), exp.scenario.malicious if exp.scenario.copies else 0
    if clients is None:
        return None
    if copies >= clients:
        raise ConfigError(
            f"scenario.malicious must leave an honest client to hold the data (malicious_hold_data=false), got "
            f"{copies} of {clients} clients; lower it or raise scenario.clients"
        )
    return clients - exp.evaluation.unseen_count(clients - copies)


def refuse_numbers(exp: Experiment, clients: int | None) -> None:
    """Raises ConfigError where there are too few clients, or the server would leave them nothing."""
    if clients is not None and exp.scenario.malicious > clients:
        raise ConfigError(
            f"scenario.malicious must be at most the number of clients, {clients}, got {exp.scenario.malicious}; "
            "lower it or raise scenario.clients"
        )
    if exp.local.clip_norm is not None and exp.privacy.example_clip is not None:
        raise ConfigError(
            f"local.clip_norm={exp.local.clip_norm:g} would shorten the noised gradient of a batch, but privacy="
            f"{option(exp.privacy)} clips that of every example before; use local.clip_norm=null"
        )
    if exp.local.order == "by_class" and exp.privacy.sampling != "rule":
        raise ConfigError(
            f"privacy={option(exp.privacy)} draws its batches, so local.order=by_class does nothing; leave it out"
        )
    if exp.engine.precision == "bf16" and exp.privacy.example_clip is not None:
        raise ConfigError(
            f"engine.precision=bf16 would round the gradients of single examples, which privacy={option(exp.privacy)} "
            "clips; use engine.precision=float32"
        )
    validation = exp.evaluation.validation_fraction if exp.needs_validation else 0.0
    if exp.scenario.public_fraction + validation >= 1:
        raise ConfigError(
            f"scenario.public_fraction={exp.scenario.public_fraction:g} and evaluation.validation_fraction="
            f"{validation:g} must leave examples to the clients, but make up all of them; lower one of them"
        )


def refuse_data(exp: Experiment) -> None:
    """Raises ConfigError where a part cannot work with what is known of the data before it is loaded."""
    facts = check_data.checked_facts(exp.dataset, exp.data_dir)
    if exp.scenario.public_fraction and not exp.scenario.public_count(facts.train_size):
        raise ConfigError(
            f"scenario.public_fraction must give at least one of the {facts.train_size} training examples, got "
            f"{exp.scenario.public_fraction:g}; raise it"
        )
    if exp.evaluation.own_test and facts.subjects is None:
        raise ConfigError(
            "evaluation.own_test=true needs a dataset that knows whom each example comes from, but this one has no "
            "subjects; use evaluation.personal_fraction=0.2, or set dataset.client=COLUMN (table, huggingface)"
        )
    exp.loss.refuse(facts)
    refuse_targets(exp, facts)
    metrics.refuse(exp.metric_entries, facts)
    exp.evaluation.refuse(exp.metrics[0])
    exp.stop.refuse(exp.metrics[0])
    if exp.stop.needs_test and not exp.evaluation.test:
        raise ConfigError(
            f"stop={option(exp.stop)} counts rounds by test data, but evaluation.test=false; use stop=target"
        )
    for part in (exp.honest_federation, exp.attack, exp.audit):
        part.refuse(facts)
    input_facts = exp.features.facts(facts)
    exp.augment.refuse(input_facts)
    exp.model.refuse(input_facts)
    for part in (exp.local, exp.aggregator, exp.privacy):
        part.refuse(exp.model, input_facts)


def refuse_targets(exp: Experiment, facts: Facts) -> None:
    """Raises ConfigError where a part, or what is to be measured, is about classes and the targets are none."""
    if facts.targets == "class":
        return
    needing = [(role, part) for role, part in exp.parts() if getattr(part, "needs_classes", False)]
    demands = [(f"{role}={option(part)}", f"use another {role}") for role, part in needing]
    demands += [("evaluation.local_models=true", "leave it out")] * exp.evaluation.local_models
    demands += [("local.order=by_class", "use local.order=file")] * (exp.local.order == "by_class")
    for subject, cure in demands:
        raise ConfigError(
            f"{subject} needs targets that are classes, but those of {describe_choice('dataset', exp.dataset)} are "
            f"{facts.targets}; {cure}"
        )


def _part_of(exp: Experiment, role: str) -> Any:
    """The part of a role, or a section of the config; the experiment itself for the empty role."""
    return exp.part(role) if role else exp


def _describe(exp: Experiment, role: str, flag: str) -> str:
    if not role:
        return "the server"
    roles_by_name = {entry.name: entry for entry in roles.all_roles()}
    if role not in roles_by_name:
        return SETTINGS.get((role, flag), f"{role}.{flag}")
    part = exp.part(role)
    return f"{role}={roles_by_name[role].default if type(part) is roles_by_name[role].kind else option(part)}"
