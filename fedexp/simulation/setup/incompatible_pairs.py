"""The pairs of parts that exclude each other, as a table. `compatibility.py` refuses them."""

from dataclasses import dataclass
from typing import Any

from fedexp.config import roles
from fedexp.core.part import option
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
        but = self.but.format(part=_part_of(exp, self.other_role))
        return f"{first} {because}, but {second} {but}; use {self._replacement(exp)}"

    def _replacement(self, exp: Experiment) -> str:
        """What to write instead; where a rule has a half at the clients and one at the server, instead of both."""
        if self.use.startswith("aggregator=") and exp.aggregator.client_keys:
            return f"local=sgd {self.use}"
        if self.use.startswith("local=") and exp.local.server_keys:
            return f"{self.use} aggregator=fedavg"
        return self.use


PUBLIC = "scenario.public_fraction=0.2, or federation.server_persons where federation=subject"
WIDTHS = "changes the widths of its hidden layers"
SETTINGS = {  # what holds of a setting and not of a part, as the setting is typed
    ("fleet", "deadline_s"): "fleet.deadline_s",
    ("fleet", "changes_idle_s"): "fleet.idle_s",
    ("pacing", "discards_uploads"): "pacing.max_staleness",
    ("scenario", "copies"): "scenario.malicious_hold_data=false",
    ("scenario", "trains_alone"): "scenario.training=local",
    ("scenario", "pools_data"): "scenario.training=central",
    ("scenario", "malicious"): "scenario.malicious",
    ("evaluation", "unseen_fraction"): "evaluation.unseen_fraction",
    ("evaluation", "every_s"): "evaluation.every_s",
    ("evaluation", "validates_at_clients"): "evaluation.validation_at=clients",
    ("evaluation", "local_models"): "evaluation.local_models",
    ("evaluation", "fine_tune_epochs"): "evaluation.fine_tune_epochs",
    ("evaluation", "confusion_matrix"): "evaluation.metrics=[...,confusion_matrix]",
}
ALONE = "has every client train alone and averages nothing"
STALE = "takes uploads that began with older models"
GOES_ON = "lets clients train on while the server steps"
OWN_STARTS = "starts each client from a model of its own"
SWAPS = "has the server send clients each other's models, to be judged on examples that they hold out"
GRADIENTS = "with audit.score=uploads compares what is sent with gradients of one global model"
POOLED = "has one client train on the examples of all"
HIDES = "shows nobody the row of a single client"
# fmt: off
ROWS = tuple(Incompatibility(*row) for row in (
    ("stop", "needs_clock", "needs a simulated clock", "", "not has_clock", "has none", "fleet=simulated"),
    ("stop", "needs_privacy", "needs a ledger", "privacy", "not guarantees", "keeps none",
     "privacy=dp_sgd or another"),
    ("availability", "changes", "has clients come and go in simulated time", "", "not has_clock", "has no clock",
     "fleet=simulated"),
    ("evaluation", "every_s", "counts simulated seconds", "", "not has_clock", "has no clock", "fleet=simulated"),
    ("selector", "needs_fleet", "asks for the clients' machines and links", "fleet", "not simulates", "has none",
     "fleet=simulated"),
    ("features", "needs_public", "needs public data of the server", "", "not holds_public", "has none", PUBLIC),
    ("pretraining", "needs_public", "needs public data of the server", "", "not holds_public", "has none", PUBLIC),
    ("clustering", "needs_public", "needs public data of the server", "", "not holds_public", "has none", PUBLIC),
    ("aggregator", "needs_public", "needs public data of the server", "", "not holds_public", "has none", PUBLIC),
    ("aggregator", "keeps_rows", "remembers what each client sent, or the sum of it", "pre_aggregation",
     "averages_rows", "mixes the rows of several", "pre_aggregation=none"),
    ("server_optimizer", "needs_layout", "compares each global model with the one before", "aggregator",
     "not keeps_layout", WIDTHS, "server_optimizer=replace"),
    ("server_optimizer", "needs_layout", "moves the global model", "aggregator", "own_starts", OWN_STARTS,
     "server_optimizer=replace"),
    ("selector", "needs_one_model", "{part.needs_one_model}", "aggregator", "own_starts", OWN_STARTS,
     "selector=random"),
    ("server_schedule", "moves", "changes the server's rate from round to round", "server_optimizer", "not has_rate",
     "has none", "server_optimizer=momentum server_optimizer.beta=0"),
    ("pre_aggregation", "averages_rows", "mixes the rows of clients", "aggregator", "not keeps_layout",
     WIDTHS + ", and each client holds others of their units", "pre_aggregation=none"),
    ("local", "keeps_rows", "keeps entries of the network from round to round", "aggregator", "not keeps_layout",
     WIDTHS + ", and another round's row may hold other units", "local=sgd"),
    ("clustering", "compares_updates", "compares the updates of clients", "aggregator", "hides_rows", HIDES,
     "clustering=none"),
    ("clustering", "has_clusters", "averages and compares models of one shape", "aggregator", "not keeps_layout",
     WIDTHS, "clustering=none"),
    ("selector", "averages_models", "averages the global model with the clients'", "aggregator", "not keeps_layout",
     WIDTHS, "selector=random"),
    ("audit", "needs_uploads", GRADIENTS, "aggregator", "not keeps_layout", WIDTHS, "audit.score=loss"),
    ("privacy", "guarantees", "covers what is trained", "selector", "reveals", "learns {part.reveals}",
     "selector=random"),
    ("privacy", "guarantees", "covers what is trained", "aggregator", "reveals", "learns {part.reveals}",
     "aggregator=fedavg"),
    ("privacy", "guarantees", "covers what is trained", "clustering", "reveals", "learns {part.reveals}",
     "clustering=none"),
    ("privacy", "noises_mean", "noises the mean of the clipped updates, each with the same share", "aggregator",
     "not averages_uniformly", "is not the mean with equal shares", "aggregator=fedavg "
     "aggregator.weighting=uniform"),
    ("privacy", "noises_mean", "noises the mean of the clipped updates, each with the same share", "pre_aggregation",
     "averages_rows", "mixes them before", "pre_aggregation=none"),
    ("privacy", "noises_mean", "noises the mean of the clipped updates", "selector", "averages_models",
     "looks at those of single clients", "selector=random"),
    ("privacy", "noises_mean", "noises the mean of the clipped updates of all participants", "clustering",
     "has_clusters", "has several models, each the mean of fewer updates", "clustering=none"),
    ("aggregator", "normalises", "divides each update by the weights of its gradients", "local", "not is_gradient_sum",
     "{part.no_gradient_sum}", "local=sgd local.worker_momentum=false"),
    ("aggregator", "normalises", "divides the update of each client by how much it trained", "pre_aggregation",
     "averages_rows", "mixes the rows of several", "pre_aggregation=none"),
    ("aggregator", "client_keys", "corrects the mean by what clients remember", "local", "not server_keys",
     "has them remember nothing for it", "local=feddyn, or algorithm=feddyn"),
    ("local", "server_keys", "has clients remember what the server corrects their mean by", "aggregator",
     "not client_keys", "does not", "aggregator=feddyn, or algorithm=feddyn"),
    ("pre_aggregation", "averages_rows", "mixes the rows of clients", "aggregator", "hides_rows", HIDES,
     "pre_aggregation=none"),
    ("selector", "averages_models", "compares averages of some clients' models with others", "aggregator",
     "hides_rows", HIDES, "selector=random"),
    ("local", "extra_rows", "sends the server a second row that tells the first", "aggregator", "hides_rows",
     HIDES, "local=sgd"),
    ("local", "cost_needs_client_state", "makes an example's cost depend on other models or examples", "privacy",
     "example_clip", "protects single examples by clipping what each of them does", "local=sgd"),
    ("local", "starts_from_examples", "fits what a client starts from to its examples", "privacy", "example_clip",
     "clips what they do to the training alone", "local=sgd"),
    ("local", "repeats_batches", "takes several steps on each batch", "privacy", "example_clip",
     "counts every step as a batch that is drawn anew", "local=sgd"),
    ("local", "cost_needs_client_state", "makes an example's cost depend on other models or examples", "audit",
     "needs_uploads", "with audit.score=uploads compares what is sent with gradients of single examples",
     "audit.score=loss"),
    ("local", "needs_log_likelihood", "weighs examples by their probabilities, whose logarithms it takes losses for",
     "loss", "not is_log_likelihood", "is something else", "loss=cross_entropy, or local=sgd"),
    ("codec", "is_lossy", "rounds what clients send", "aggregator", "hides_rows", "adds it up as whole numbers",
     "codec=none"),
    ("codec", "is_lossy", "rounds what clients send", "privacy", "covers_uploads", "clips and noises it afterwards",
     "codec=none"),
    ("codec", "keeps_rows", "keeps a row of every client from round to round", "aggregator", "not keeps_layout",
     WIDTHS + ", and another round's row may hold other units", "codec=none"),
    ("audit", "needs_uploads", "with audit.score=uploads looks for single examples in what is trained", "privacy",
     "covers_uploads", "protects it later", "audit.score=loss or privacy=dp_sgd"),
    ("audit", "needs_uploads", GRADIENTS, "clustering", "has_clusters", "has several", "audit.score=loss"),
    ("audit", "needs_uploads", GRADIENTS, "aggregator", "own_starts", OWN_STARTS, "audit.score=loss"),
    ("evaluation", "validates_at_clients", "leaves validation data to the clients", "selector", "needs_validation",
     "compares models on some of the server's", "evaluation.validation_at=null"),
    ("evaluation", "validates_at_clients", "leaves validation data to the clients", "aggregator", "needs_validation",
     "compares models on some of the server's", "evaluation.validation_at=null"),
    ("evaluation", "local_models", "follows one global model", "clustering", "has_clusters", "has several",
     "evaluation.personal_fraction"),
    ("evaluation", "fine_tune_epochs", "trains clients' models on from the global one", "aggregator",
     "not keeps_layout", WIDTHS, "aggregator=fedavg"),
    ("evaluation", "fine_tune_epochs", "tunes a client's model by the loss of its examples alone", "local",
     "not fine_tuning_rule", "trains by what it keeps of other rounds, or by other models", "local=sgd"),
    ("selector", "needs_one_model", "{part.needs_one_model}", "clustering", "has_clusters", "has several",
     "selector=random"),
    ("aggregator", "keeps_rows", "has one global model for all clients that it never heard of", "clustering",
     "has_clusters", "has several", "aggregator=geometric_median"),
    ("pacing", "needs_fleet", "counts the uploads that come first", "fleet", "not simulates",
     "has no machines, so all come at once", "fleet=simulated"),
    ("pacing", "overlaps", STALE, "selector", "needs_cohort", "{part.needs_cohort}", "selector=random"),
    ("pacing", "overlaps", GOES_ON, "fleet", "deadline_s", "ends a round in which all began together",
     "fleet.deadline_s=null"),
    ("pacing", "has_period", "takes a step every pacing.period_s", "fleet", "changes_idle_s",
     "is how long a step without clients takes", "fleet.idle_s=180"),
    ("pacing", "overlaps", STALE, "local", "extra_rows", "sends what it makes of the server's second row of the "
     "same step", "local=sgd"),
    ("pacing", "overlaps", STALE, "clustering", "has_clusters", "groups clients by the uploads of one round",
     "clustering=none"),
    ("pacing", "overlaps", STALE, "aggregator", "not keeps_layout", WIDTHS, "aggregator=fedavg"),
    ("pacing", "overlaps", STALE, "aggregator", "needs_cohort", "{part.needs_cohort}", "aggregator=fedavg"),
    ("pacing", "discards_uploads", "throws away uploads that were sent", "privacy", "counts_uploads",
     "counts only what the server made something of", "pacing.max_staleness=null"),
    ("pacing", "moves_uploads", "adds what a client did to a model that it did not begin with, or less of it",
     "aggregator", "needs_models", "takes the present model with an update to be the client's",
     "pacing.mixing=1 pacing.staleness=constant"),
    ("pacing", "overlaps", STALE, "scenario", "trains_alone", ALONE, "pacing=synchronous"),
    ("pacing", "overlaps", STALE, "scenario", "pools_data", "has one client", "pacing=synchronous"),
    ("pacing", "overlaps", STALE, "evaluation", "local_models", "adds uploads to the model of their round",
     "evaluation.local_models=false"),
    ("pacing", "overlaps", STALE, "audit", "needs_uploads", "with audit.score=uploads compares what is sent with "
     "gradients of the present model", "audit.score=loss"),
    ("clustering", "has_clusters", "is about who shares a model", "local", "judging_fraction", SWAPS, "local=sgd"),
    ("pacing", "overlaps", STALE, "local", "judging_fraction", SWAPS, "local=sgd"),
    ("aggregator", "hides_rows", HIDES, "local", "judging_fraction", SWAPS, "local=sgd"),
    ("aggregator", "own_starts", OWN_STARTS, "local", "judging_fraction", SWAPS, "local=sgd"),
    ("privacy", "guarantees", "covers what is trained", "local", "judging_fraction", SWAPS, "local=sgd"),
    ("scenario", "trains_alone", ALONE, "local", "judging_fraction", SWAPS, "local=sgd"),
    ("scenario", "pools_data", POOLED, "local", "judging_fraction", SWAPS, "local=sgd"),
    ("selector", "needs_one_model", "{part.needs_one_model}", "local", "judging_fraction", SWAPS, "local=sgd"),
    ("audit", "needs_uploads", GRADIENTS, "local", "judging_fraction", SWAPS, "audit.score=loss"),
    ("scenario", "copies", "divides all data over the honest clients", "federation", "not resizable",
     "makes clients of its own number", "federation=iid"),
    ("scenario", "copies", "gives malicious clients copies of the examples of others", "privacy", "guarantees",
     "counts what one client tells of an example", "scenario.malicious_hold_data=true"),
    ("scenario", "trains_alone", ALONE, "scenario", "malicious", "is about harm to others", "scenario.malicious=0"),
    ("scenario", "trains_alone", ALONE, "clustering", "has_clusters", "is about who shares a model", "clustering=none"),
    ("scenario", "trains_alone", ALONE, "selector", "needs_one_model", "{part.needs_one_model}", "selector=all"),
    ("scenario", "trains_alone", ALONE, "aggregator", "not keeps_layout", WIDTHS, "aggregator=fedavg"),
    ("scenario", "trains_alone", ALONE, "local", "extra_rows", "needs a second row from the server", "local=sgd"),
    ("scenario", "trains_alone", ALONE, "fleet", "simulates", "simulates links on which models travel", "fleet=none"),
    ("scenario", "trains_alone", ALONE, "privacy", "covers_uploads", "protects what is sent", "privacy=dp_sgd"),
    ("scenario", "trains_alone", ALONE, "audit", "needs_uploads", "with audit.score=uploads looks at what is sent",
     "audit.score=loss"),
    ("scenario", "trains_alone", ALONE, "evaluation", "unseen_fraction", "measures a global model at other clients",
     "evaluation.unseen_fraction=0"),
    ("scenario", "trains_alone", ALONE, "evaluation", "confusion_matrix", "counts the answers of one global model",
     "evaluation.metrics=null"),
    ("scenario", "pools_data", POOLED, "scenario", "malicious", "is about harm to others", "scenario.malicious=0"),
    ("scenario", "pools_data", POOLED, "clustering", "has_clusters", "groups several clients", "clustering=none"),
))
# fmt: on


def has_flag(part: Any, flag: str) -> bool:
    """Whether a part has a flag; `not FLAG` asks for the opposite."""
    return bool(getattr(part, flag.removeprefix("not "))) != flag.startswith("not ")


def _part_of(exp: Experiment, role: str) -> Any:
    """The part of a role, or a section of the config; the experiment itself for the empty role."""
    return exp.part(role) if role else exp


def _describe(exp: Experiment, role: str, flag: str) -> str:
    if not role:
        return "the server"
    if (role, flag) in SETTINGS:
        return SETTINGS[role, flag]
    return describe_part(exp, role)


def describe_part(exp: Experiment, role: str) -> str:
    """The part of a role as it is typed."""
    roles_by_name, part = {entry.name: entry for entry in roles.all_roles()}, exp.part(role)
    return f"{role}={roles_by_name[role].default if type(part) is roles_by_name[role].kind else option(part)}"
