"""The roles of a run: config groups of which every run has one option. Each is declared here, once.

The round, checkpoints, reports, comparisons and the public index read this table. An installed package adds a role of
its own by an entry point of the group `fedexp.groups` that names a `Role`; its options lie in the folder `conf` of that
package. Contracts are named by text, so that a command which runs nothing need not import PyTorch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from fedexp.core.errors import ConfigError

ENTRY_POINTS = "fedexp.groups"
CONTRACT = "fedexp.parts.{}.contract.{}"
When = Literal["leaving", "arriving", "mixing"]


@dataclass(frozen=True)
class Role:
    """A config group, and how its part takes part in a round.

    `contract` is the dotted name of the class that its options extend. `default` is the option of runs that choose
    none, those of older versions included; its class is the contract itself, which does nothing.

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

    @property
    def kind(self) -> Any:
        """The class of its contract."""
        module, _, name = self.contract.rpartition(".")
        return getattr(import_module(module), name)


def _ours(name: str, kind: str, default: str = "", **more: Any) -> Role:
    return Role(name, CONTRACT.format(name, kind), default, **more)


ROLES = (
    _ours("dataset", "Dataset", about_data=True),
    _ours("federation", "Federation", about_data=True),
    _ours("features", "Features", "none"),
    _ours("model", "Model"),
    _ours("pretraining", "Pretraining", "none"),
    _ours("local", "LocalRule"),
    _ours("codec", "Codec", "none", step="encode", when="leaving"),
    _ours("selector", "Selector", on_host=True),
    _ours("fleet", "Fleet", "none", on_host=True),
    _ours("attack", "Attack", "none", step="tamper", when="arriving"),
    _ours("clustering", "Clustering", "none"),
    _ours("privacy", "Privacy", "none", step="protect", when="arriving", on_host=True),
    _ours("audit", "Audit", "none"),
    _ours("pre_aggregation", "PreAggregation", "none", step="mix", when="mixing", a_model=True),
    _ours("aggregator", "Aggregator", a_model=True),
    _ours("server_optimizer", "ServerOptimizer", "replace", a_model=True),
    _ours("stop", "Stop", "rounds", on_host=True),
    _ours("tracker", "Tracker", "none", changes_results=False),
    Role("engine", "fedexp.training.engine.Engine", changes_results=False),
)


@cache
def installed() -> tuple[Role, ...]:
    """The roles that other packages bring.

    Raises:
        ConfigError: an entry point names no role, or one that is taken.
    """
    found: list[Role] = []
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda one: one.name):
        role = entry.load()
        if not isinstance(role, Role) or role.name in {one.name for one in (*ROLES, *found)}:
            raise ConfigError(
                f"the entry point {entry.name} = {entry.value} of {ENTRY_POINTS} must name a fedexp.parts.Role that "
                f"nobody else has, got {role!r}; mend or uninstall that package"
            )
        found.append(role)
    return tuple(found)


@cache
def option_folders() -> tuple[Path, ...]:
    """The folders with the options of installed roles: `conf` in the package of each entry point."""
    packages = dict.fromkeys(entry.module.partition(".")[0] for entry in entry_points(group=ENTRY_POINTS))
    specs = (find_spec(package) for package in packages)
    return tuple(Path(place) / "conf" for spec in specs if spec for place in spec.submodule_search_locations or ())


def chosen(overrides: Sequence[str]) -> list[str]:
    """The words of a command line with an option of each installed role, which Hydra wants to be added by `+`."""
    words = list(overrides)
    for role in installed():
        mine = [place for place, word in enumerate(words) if word.lstrip("+").partition("=")[0] == role.name]
        for place in mine:
            words[place] = "+" + words[place].lstrip("+")
        if role.default and not mine:
            words.append(f"+{role.name}={role.default}")
    return words


def every() -> tuple[Role, ...]:
    """All roles, in the order in which their parts act where they act at the same time."""
    return (*ROLES, *installed())


def at(when: When) -> Iterator[Role]:
    """The roles whose parts change uploads at this point of a round, in order."""
    return (role for role in every() if role.when == when)


def names(**wanted: bool | str) -> tuple[str, ...]:
    """The names of the roles for which these fields have these values."""
    return tuple(role.name for role in every() if all(getattr(role, key) == value for key, value in wanted.items()))
