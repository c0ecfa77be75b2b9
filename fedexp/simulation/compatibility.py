"""What cannot work together: parts with parts, parts with the machine, parts with the files. One sentence each."""

from fedexp.core.errors import ConfigError
from fedexp.core.part import option
from fedexp.parts.dataset import believed
from fedexp.simulation.experiment import Experiment


def refuse(exp: Experiment) -> None:
    """Raises ConfigError where the parts, the machine or the files cannot work together; loads nothing."""
    if exp.stop.needs_clock and not exp.fleet.simulates:
        raise ConfigError("stop=simulated_time needs a simulated clock, but the fleet has none; set fleet=simulated")
    if exp.stop.needs_privacy and not exp.privacy.guarantees:
        raise ConfigError("stop=privacy_budget needs a ledger, but nothing is protected; set privacy=dp_sgd or another")
    if exp.selector.needs_fleet and not exp.fleet.simulates:
        raise ConfigError(
            f"selector={option(exp.selector)} asks for the clients' machines and links, but the fleet has "
            "none; set fleet=simulated"
        )
    clients = exp.federation.known_clients()
    if clients is not None and exp.scenario.malicious > clients:
        raise ConfigError(
            f"scenario.malicious must be at most the number of clients, {clients}, got {exp.scenario.malicious}; "
            "lower it or raise scenario.clients"
        )
    if exp.aggregator.keeps_rows and exp.pre_aggregation.averages_rows:
        raise ConfigError(
            f"aggregator={option(exp.aggregator)} remembers the row of each client, but pre_aggregation="
            f"{option(exp.pre_aggregation)} mixes the rows of several; use pre_aggregation=none"
        )
    refuse_shares(exp)
    refuse_new_layouts(exp)
    refuse_leaks(exp)
    refuse_one_model(exp)
    refuse_single_rows(exp)
    refuse_blind_audits(exp)
    exp.fleet.refuse(clients)
    exp.engine.refuse()
    exp.tracker.refuse()
    exp.dataset.require(exp.data_dir)
    refuse_data(exp)


def refuse_data(exp: Experiment) -> None:
    """Raises ConfigError where a part cannot work with what is known of the data before it is loaded."""
    facts = believed.told(exp.dataset, exp.data_dir)
    if exp.scenario.public_fraction and not exp.scenario.public_count(facts.train_size):
        raise ConfigError(
            f"scenario.public_fraction must give at least one of the {facts.train_size} training examples, got "
            f"{exp.scenario.public_fraction:g}; raise it"
        )
    exp.federation.refuse(facts)
    exp.attack.refuse(facts)
    exp.audit.refuse(facts)
    seen = exp.features.facts(facts)
    exp.model.refuse(seen)
    exp.local.refuse(exp.model, seen)
    exp.aggregator.refuse(exp.model, seen)
    exp.privacy.refuse(exp.model, seen)


def refuse_shares(exp: Experiment) -> None:
    """Raises ConfigError where the server would leave the clients nothing, or has nothing itself to learn from."""
    validation = exp.evaluation.validation_fraction if exp.needs_validation else 0.0
    if exp.scenario.public_fraction + validation >= 1:
        raise ConfigError(
            f"scenario.public_fraction={exp.scenario.public_fraction:g} and evaluation.validation_fraction="
            f"{validation:g} must leave examples to the clients, but make up all of them; lower one of them"
        )
    for name in ("features", "pretraining", "clustering"):
        part = getattr(exp, name)
        if part.needs_public and not exp.holds_public:
            raise ConfigError(
                f"{name}={option(part)} needs public data of the server, but it has none; set "
                "scenario.public_fraction=0.2, or federation.server_persons where federation=subject"
            )


def refuse_leaks(exp: Experiment) -> None:
    """Raises ConfigError where a part learns of clients what the privacy does not cover, or undoes its noise."""
    if not exp.privacy.guarantees:
        return
    who = f"privacy={option(exp.privacy)}"
    others = {"selector": "random", "aggregator": "fedavg", "clustering": "none"}
    for name, way_out in others.items():
        part = getattr(exp, name)
        if part.reveals:
            raise ConfigError(
                f"{who} covers what is trained, but {name}={option(part)} learns {part.reveals}; use {name}={way_out}"
            )
    if not exp.privacy.noises_mean:
        return
    mean = exp.aggregator.averages and exp.aggregator.weighting == "uniform"
    if not mean or exp.pre_aggregation.averages_rows:
        raise ConfigError(
            f"{who} noises the mean of the clipped updates, each with the same share; use aggregator=fedavg "
            "aggregator.weighting=uniform pre_aggregation=none"
        )
    if exp.selector.averages_models:
        raise ConfigError(
            f"{who} noises the sum of the updates, but selector={option(exp.selector)} looks at those of single "
            "clients; use selector=random"
        )


def refuse_new_layouts(exp: Experiment) -> None:
    """Raises ConfigError where the aggregator changes the global model's shape and another part needs it kept."""
    if exp.aggregator.keeps_layout:
        return
    changes = f"but aggregator={option(exp.aggregator)} changes the widths of its hidden layers"
    if exp.server_optimizer.needs_layout:
        raise ConfigError(
            f"server_optimizer={option(exp.server_optimizer)} compares each global model with the one before, "
            f"{changes}; use server_optimizer=replace"
        )
    if exp.pre_aggregation.averages_rows:
        raise ConfigError(
            f"pre_aggregation={option(exp.pre_aggregation)} mixes the rows of clients, {changes}, and each client "
            "holds others of their units; use pre_aggregation=none"
        )
    if exp.local.keeps_rows:
        raise ConfigError(
            f"local={option(exp.local)} keeps a row of every client from round to round, {changes}, and another "
            "round's row may hold other units; use local=sgd"
        )
    if exp.clustering.divides:
        raise ConfigError(
            f"clustering={option(exp.clustering)} averages and compares models of one shape, {changes}; use "
            "clustering=none"
        )
    if exp.selector.averages_models:
        raise ConfigError(
            f"selector={option(exp.selector)} averages the global model with the clients', {changes}; use "
            "selector=random"
        )


def refuse_single_rows(exp: Experiment) -> None:
    """Raises ConfigError where nobody sees the row of a single client and another part needs or tells it."""
    if not exp.aggregator.hides_rows:
        return
    hides = f"but aggregator={option(exp.aggregator)} shows nobody the row of a single client"
    if exp.pre_aggregation.averages_rows:
        raise ConfigError(
            f"pre_aggregation={option(exp.pre_aggregation)} mixes the rows of clients, {hides}; use "
            "pre_aggregation=none"
        )
    if exp.selector.averages_models:
        raise ConfigError(
            f"selector={option(exp.selector)} compares averages of some clients' models with others, {hides}; use "
            "selector=random"
        )
    if exp.local.rows_sent > 1:
        raise ConfigError(
            f"local={option(exp.local)} sends the server a second row that tells the first, {hides}; use local=sgd"
        )


def refuse_blind_audits(exp: Experiment) -> None:
    """Raises ConfigError where the audit looks at uploads that are not what is promised to be private."""
    if not exp.audit.needs_uploads:
        return
    audit = f"audit={option(exp.audit)} audit.score=uploads"
    if exp.privacy.guarantees and exp.privacy.example_clip is None:
        raise ConfigError(
            f"{audit} looks for single examples in what is trained, but privacy={option(exp.privacy)} protects it "
            "later; use audit.score=loss or privacy=dp_sgd"
        )
    if not exp.aggregator.keeps_layout:
        raise ConfigError(
            f"{audit} compares what a client sends with gradients of the global model, but aggregator="
            f"{option(exp.aggregator)} changes the widths of its hidden layers; use audit.score=loss"
        )


def refuse_one_model(exp: Experiment) -> None:
    """Raises ConfigError where another part would need one model for all, or the clusterings more clients."""
    exp.clustering.refuse(exp.federation.known_clients())
    if not exp.clustering.divides:
        return
    several = f"but clustering={option(exp.clustering)} has several"
    if exp.evaluation.local_models:
        raise ConfigError(
            f"evaluation.local_models follows one global model, {several}; use evaluation.personal_fraction"
        )
    if exp.selector.needs_one_model:
        raise ConfigError(
            f"selector={option(exp.selector)} {exp.selector.needs_one_model}, {several}; use selector=random"
        )
    if exp.aggregator.keeps_rows:
        raise ConfigError(
            f"aggregator={option(exp.aggregator)} counts every client that it never heard of in one global model, "
            f"{several}; use aggregator=geometric_median"
        )
    if exp.audit.needs_uploads:
        raise ConfigError(
            f"audit={option(exp.audit)} audit.score=uploads compares what a client sends with gradients of one global "
            f"model, {several}; use audit.score=loss"
        )
