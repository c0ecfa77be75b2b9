"""Two parts that exclude each other: when they meet, and how that is said."""

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
