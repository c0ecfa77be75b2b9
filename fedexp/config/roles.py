"""The roles of a run: config groups of which every run has one option. Each is declared here, once.

The round, checkpoints, reports, comparisons and the public index read this table. An installed package adds a role of
its own by an entry point of the group `fedexp.groups` that names a `Role`; its options lie in the folder `conf` of that
package. Contracts are named by text, so that a command which runs nothing need not import PyTorch.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError

ENTRY_POINTS = "fedexp.groups"
CONTRACT = "fedexp.parts.{}.contract.{}"
When = Literal["leaving", "arriving", "mixing"]
_CURE = "mend or uninstall that package"


@dataclass(frozen=True)
class Role:
    """A config group, and how its part takes part in a round.

    `contract` is the dotted name of the class that its options extend. `default` is the option of runs that choose
    none, those of older versions included; its class is the contract itself, which does nothing. An installed role
    must have one. `purpose` is what `fedexp list` says of the group.

    A role with a `step` changes uploads: the method of that name maps (uploads, memory, ctx) to (uploads, memory). It
    is called `when` rows are "leaving" their clients, "arriving" at the server, or "mixing" (those of one model, before
    the aggregator sees them).
    """

    name: str
    contract: str
    default: str = ""
    step: str = ""
    when: When | None = None
    on_host: bool = False  # its memory stays on the CPU
    a_model: bool = False  # it has a memory for each model
    about_data: bool = False  # it decides about the data, which must be the same where methods are compared
    changes_results: bool = True  # whether a run goes on with another option of it
    binding: tuple[str, ...] = ()  # its keys that change results although the others do not
    purpose: str = ""

    @property
    def kind(self) -> Any:
        """The class of its contract.

        Raises:
            ConfigError: there is no such class, or it lacks the step.
        """
        module, _, name = self.contract.rpartition(".")
        try:
            contract_class = getattr(import_module(module), name)
        except Exception as error:
            raise ConfigError(f"{self._subject} has no class: {type(error).__name__}: {error}; {_CURE}") from error
        if self.step and not callable(getattr(contract_class, self.step, None)):
            raise ConfigError(f"{self._subject} must have a method {self.step}, which is the step of its role; {_CURE}")
        return contract_class

    def is_idle(self, config: Mapping[str, Any]) -> bool:
        """Whether a config has the default of this role, which does nothing, or does not have the role at all."""
        node = config.get(self.name, {"_target_": self.contract})
        if not self.default or not isinstance(node, Mapping) or node.get("_target_") != self.contract:
            return False
        values = {"_target_": self.contract, **(vars(self.kind()) if len(node) > 1 else {})}
        return {**values, **node} == values

    @property
    def _subject(self) -> str:
        return f"the contract {self.contract} of the group {self.name}"


def _builtin_role(name: str, kind: str, default: str = "", **options: Any) -> Role:
    return Role(name, CONTRACT.format(name, kind), default, **options)


ROLES = (
    _builtin_role("dataset", "Dataset", about_data=True),
    _builtin_role("federation", "Federation", about_data=True),
    _builtin_role("features", "Features", "none"),
    _builtin_role("augment", "Augment", "none"),
    _builtin_role("model", "Model"),
    _builtin_role("pretraining", "Pretraining", "none"),
    _builtin_role("loss", "Loss"),
    _builtin_role("local", "LocalRule"),
    _builtin_role("schedule", "Schedule", "constant"),
    _builtin_role("codec", "Codec", "none", step="encode", when="leaving"),
    _builtin_role("selector", "Selector", on_host=True),
    _builtin_role("fleet", "Fleet", "none", on_host=True),
    _builtin_role("availability", "Availability", "always", on_host=True),
    _builtin_role("attack", "Attack", "none", step="tamper", when="arriving"),
    _builtin_role("pacing", "Pacing", "synchronous", step="discount", when="arriving", on_host=True),
    _builtin_role("clustering", "Clustering", "none"),
    _builtin_role("privacy", "Privacy", "none", step="protect", when="arriving", on_host=True),
    _builtin_role("audit", "Audit", "none"),
    _builtin_role("pre_aggregation", "PreAggregation", "none", step="mix", when="mixing", a_model=True),
    _builtin_role("aggregator", "Aggregator", a_model=True),
    _builtin_role("server_optimizer", "ServerOptimizer", "replace", a_model=True),
    Role("server_schedule", CONTRACT.format("schedule", "Schedule"), "constant"),
    _builtin_role("stop", "Stop", "rounds", on_host=True),
    _builtin_role("tracker", "Tracker", "none", changes_results=False),
    Role("engine", "fedexp.training.engine.contract.Engine", changes_results=False, binding=("precision",)),
)


@cache
def installed_roles() -> tuple[Role, ...]:
    """The roles that other packages bring.

    Raises:
        ConfigError: an entry point names no role, or one that cannot be; says which package it is of.
    """
    roles_by_name: dict[str, Role] = {}
    origins: dict[str, str] = {}
    for entry in sorted(
        entry_points(group=ENTRY_POINTS), key=lambda entry_point: (entry_point.name, entry_point.value)
    ):
        role, origin = _load_role(entry), _origin(entry)
        if role.name in roles_by_name:
            raise ConfigError(
                f"{origin} and {origins[role.name]} both bring a group {role.name}; uninstall one of them"
            )
        roles_by_name[role.name], origins[role.name] = role, origin
    return tuple(roles_by_name.values())


def _load_role(entry: EntryPoint) -> Role:
    """The role that an entry point names, as far as it can be checked without its contract."""
    try:
        role = entry.load()
    except Exception as error:
        raise ConfigError(f"{_origin(entry)} cannot be imported: {type(error).__name__}: {error}; {_CURE}") from error
    if not isinstance(role, Role):
        raise ConfigError(f"{_origin(entry)} must name a fedexp.parts.Role, got {role!r}; {_CURE}")
    reserved_names = {*catalog.root(conf_dir()), *catalog.groups(conf_dir()), "hydra", "extra_parts"}
    if not re.fullmatch("[a-z][a-z0-9_]*", role.name) or role.name in reserved_names:
        raise ConfigError(
            f"{_origin(entry)} must have a name of small letters that no group or key of fedexp has, got "
            f"{role.name!r}; {_CURE}"
        )
    if not role.default:
        raise ConfigError(f"{_origin(entry)} must have a default, the option of runs that choose none; {_CURE}")
    if bool(role.step) != bool(role.when):
        raise ConfigError(f"{_origin(entry)} must have both a step and when it is, or neither; {_CURE}")
    if not any((folder / role.name).is_dir() for folder in option_folders()):
        raise ConfigError(f"{_origin(entry)} has no options: its package needs conf/{role.name}/NAME.yaml; {_CURE}")
    return role


def _origin(entry: EntryPoint) -> str:
    package = entry.dist.name if entry.dist else entry.module
    return f"the group {entry.name} = {entry.value} of the package {package}"


@cache
def option_folders() -> tuple[Path, ...]:
    """The folders with the options of installed roles: `conf` in the package of each entry point, where it is there."""
    packages = dict.fromkeys(entry.module.partition(".")[0] for entry in entry_points(group=ENTRY_POINTS))
    specs = (find_spec(package) for package in packages)
    candidates = (
        Path(location) / "conf" for spec in specs if spec for location in spec.submodule_search_locations or ()
    )
    return tuple(folder for folder in candidates if folder.is_dir())


def add_installed_roles(overrides: Sequence[str]) -> list[str]:
    """Overrides with one option of each installed role: the last one given, else the role's default.

    Hydra wants them to be added by `+`.
    """
    words = list(overrides)
    for role in installed_roles():
        choices = [word for word in words if word.lstrip("+").partition("=")[0] == role.name]
        words = [word for word in words if word not in choices]
        words.append(f"+{choices[-1].lstrip('+') if choices else f'{role.name}={role.default}'}")
    return words


def all_roles() -> tuple[Role, ...]:
    """All roles, in the order in which their parts act at the same point of a round."""
    return (*ROLES, *installed_roles())


def roles_at(when: When) -> Iterator[Role]:
    """The roles whose parts change uploads at this point of a round, in order."""
    return (role for role in all_roles() if role.when == when)


def changes_no_result(key: str) -> bool:
    """Whether a config key belongs to a role that changes no result, and changes none itself."""
    group, _, subkey = key.partition(".")
    return any(role.name == group and not role.changes_results and subkey not in role.binding for role in all_roles())


def role_names(**wanted: bool | str) -> tuple[str, ...]:
    """The names of the roles whose fields have these values."""
    return tuple(role.name for role in all_roles() if all(getattr(role, key) == value for key, value in wanted.items()))
