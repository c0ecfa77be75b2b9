"""Refuses combinations that cannot work: `incompatible_pairs.py`, then checks of numbers, files and data."""

from fedexp.core.errors import ConfigError
from fedexp.core.part import describe_choice, option
from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.contract import Facts
from fedexp.scoring import metrics
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.setup.incompatibility import describe_part
from fedexp.simulation.setup.incompatible_pairs import ROWS


def refuse(exp: Experiment) -> None:
    """Raises ConfigError where the parts, the machine or the files cannot work together; loads nothing."""
    for row in ROWS:
        if row.holds(exp):
            raise ConfigError(row.sentence(exp))
    refuse_keys(exp)
    clients = training_clients(exp)
    refuse_numbers(exp, clients)
    refuse_uncounted_uploads(exp)
    refuse_sizes(exp)
    refuse_rows(exp, clients)
    exp.clustering.refuse(clients)
    exp.fleet.refuse(clients)
    exp.availability.refuse(clients)
    exp.pacing.refuse(clients)
    exp.engine.refuse()
    exp.tracker.refuse()
    exp.dataset.require(exp.data_dir)
    exp.dataset.refuse_subjects(exp.data_dir, exp.scenario.clients)
    refuse_data(exp)


def training_clients(exp: Experiment) -> int | None:
    """How many clients rounds have; None where only the data knows.

    Raises:
        ConfigError: no honest client would have data.
    """
    clients, copies = exp.federation.known_clients(), exp.scenario.malicious if exp.scenario.copies else 0
    if exp.scenario.pools_data:
        return 1
    if clients is None:
        return None
    if copies >= clients:
        raise ConfigError(
            f"scenario.malicious must leave an honest client to hold the data (malicious_hold_data=false), got "
            f"{copies} of {clients} clients; lower it or raise scenario.clients"
        )
    return clients - exp.evaluation.unseen_count(clients - copies)


def refuse_keys(exp: Experiment) -> None:
    """Raises ConfigError where clients and server share a number, but have two values of it."""
    keys, shared_keys = exp.aggregator.client_keys, exp.aggregator.shared_keys
    if all(hasattr(exp.local, key) for key in shared_keys):
        keys += shared_keys
    for key in keys:
        values = getattr(exp.local, key), getattr(exp.aggregator, key)
        client_value, server_value = (f"{value:g}" if isinstance(value, float) else value for value in values)
        if values[0] != values[1]:
            raise ConfigError(
                f"aggregator.{key} must be that of local={option(exp.local)}, local.{key}={client_value}, got "
                f"{server_value}; set both to one value, or local.{key} alone with algorithm={option(exp.local)}"
            )


def refuse_uncounted_uploads(exp: Experiment) -> None:
    """Raises ConfigError where clients may break off while they send, and a ledger counts only what has arrived."""
    if not (exp.privacy.counts_uploads and exp.pacing.overlaps):
        return
    leaves = exp.availability.changes and exp.availability.interrupts
    if leaves or exp.fleet.breaks_off_sending:
        cause = f"availability={option(exp.availability)}" if leaves else f"fleet={option(exp.fleet)} fleet.dropout_in"
        cure = "availability.interrupts=false" if leaves else "fleet.dropout_in=training"
        raise ConfigError(
            f"privacy={option(exp.privacy)} counts what arrives with pacing={option(exp.pacing)}, but with {cause} "
            f"clients break off while they send; use {cure} or pacing=synchronous"
        )


def refuse_numbers(exp: Experiment, clients: int | None) -> None:
    """Raises ConfigError where there are too few clients, or the server would leave them nothing."""
    if clients is not None and exp.scenario.malicious > clients:
        raise ConfigError(
            f"scenario.malicious must be at most the number of clients, {clients}, got {exp.scenario.malicious}; "
            "lower it or raise scenario.clients"
        )
    if exp.privacy.guarantees and exp.stop.needs_validation and exp.evaluation.validates_at_clients:
        raise ConfigError(
            f"privacy={option(exp.privacy)} covers what is trained, but stop={option(exp.stop)} ends the run by how "
            "models do on examples of clients (evaluation.validation_at=clients); use evaluation.validation_at=null"
        )
    if exp.local.clip_norm is not None and exp.privacy.example_clip is not None:
        raise ConfigError(
            f"local.clip_norm={exp.local.clip_norm:g} would shorten the noised gradient of a batch, but privacy="
            f"{option(exp.privacy)} clips that of every example before; use local.clip_norm=null"
        )
    if exp.local.order != "shuffled" and exp.privacy.sampling != "rule":
        raise ConfigError(
            f"privacy={option(exp.privacy)} draws its batches, so local.order={exp.local.order} does nothing; leave it "
            "out"
        )
    if exp.pacing.slows_server and not exp.server_optimizer.has_rate:
        raise ConfigError(
            f"pacing.slow_after lowers the server's rate where uploads are old, but "
            f"{describe_part(exp, 'server_optimizer')} has none; use server_optimizer=momentum server_optimizer.beta=0"
        )
    if exp.engine.precision == "bf16" and exp.privacy.example_clip is not None:
        raise ConfigError(
            f"engine.precision=bf16 would round the gradients of single examples, which privacy={option(exp.privacy)} "
            "clips; use engine.precision=float32"
        )
    validation = exp.server_validation_share
    if exp.scenario.public_fraction + validation >= 1:
        raise ConfigError(
            f"scenario.public_fraction={exp.scenario.public_fraction:g} and evaluation.validation_fraction="
            f"{validation:g} must leave examples to the clients, but make up all of them; lower one of them"
        )


def refuse_sizes(exp: Experiment) -> None:
    """Raises ConfigError where a selector is told how many clients a round has, but the pacing says how many begin."""
    if not exp.pacing.overlaps:
        return
    for name in exp.selector.size_keys:
        size = getattr(exp.selector, name)
        if size is not None and size != exp.scenario.participants:
            raise ConfigError(
                f"selector.{name}={size:g} does nothing with pacing={option(exp.pacing)}: as many clients begin as "
                "pacing.clients leaves places; leave it out"
            )


def refuse_rows(exp: Experiment, clients: int | None) -> None:
    """Raises ConfigError where the aggregator cannot combine what arrives if all that are asked answer.

    That is left to the rounds where some may not, or where each cluster has a share of them.
    """
    participants = None if clients is None else exp.selector.clients_per_round(clients)
    if clients is None or participants is None or exp.loses_uploads or exp.clustering.has_clusters:
        return
    if not exp.pacing.has_period:  # of which nobody knows how many arrive
        uploads = min(exp.pacing.most_uploads(participants), clients)
        exp.aggregator.refuse_rows(exp.pre_aggregation.mixed_rows(uploads))


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
    held_by_class = exp.evaluation.personal_split == "by_class"
    demands += [("evaluation.personal_split=by_class", "use evaluation.personal_split=random")] * held_by_class
    demands += [("local.order=by_class", "use local.order=file")] * (exp.local.order == "by_class")
    for subject, cure in demands:
        raise ConfigError(
            f"{subject} needs targets that are classes, but those of {describe_choice('dataset', exp.dataset)} are "
            f"{facts.targets}; {cure}"
        )
