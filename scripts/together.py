"""What goes together, from the table of `fedexp/simulation/compatibility.py`: a line for each of its rows."""

from functools import cache
from typing import Any

from omegaconf import OmegaConf

from fedexp.config import catalog, roles
from fedexp.config.compose import Request, start
from fedexp.config.location import conf_dir
from fedexp.core.part import build
from fedexp.simulation.compatibility import ROWS, Row

MISSING = {
    "clip": 1.0,
    "delta": 1e-5,
    "noise_multiplier": 1.0,
    "epsilon": 1.0,
    "accuracy": 0.9,
    "seconds": 9.0,
    "path": "a.csv",
}
SECTIONS = {"": "no public data of the server", "evaluation": "`evaluation.local_models=true`"}


def lines() -> list[str]:
    """A heading for each role that asks for something, and a line for each thing that it cannot stand."""
    found: list[str] = []
    for role in dict.fromkeys(row.who for row in ROWS):
        found += ["", f"### {role}", ""]
        for row in ROWS:
            if row.who == role:
                found += [f"* {told(row)}"]
    return [*found, ""]


def told(row: Row) -> str:
    """One row in words."""
    who, other = options(row.who, row.has), options(row.other, row.lacks)
    return f"{who} {_plain(row.because, row.who, row.has)}, but {other} {_plain(row.but, row.other, row.lacks)}: use {row.use}."


def options(role: str, flag: str) -> str:
    """Whose flag is so, as words of the command line."""
    if role not in roles.names():
        return SECTIONS[role]
    names = [option for option in catalog.options(conf_dir(), role) if so(role, option, flag)]
    return f"`{role}={', '.join(names)}`"


def so(role: str, option: str, flag: str) -> bool:
    """Whether the part that an option makes has a flag, or has it not where the flag says so."""
    return bool(getattr(part(role, option), flag.removeprefix("not "))) != flag.startswith("not ")


@cache
def part(role: str, option: str) -> Any:
    """The part of an option, with whatever it must be given."""
    config = OmegaConf.create(whole())
    config[role] = catalog.part(conf_dir(), role, option)
    node: Any = OmegaConf.to_container(config[role], resolve=True)
    return build({key: MISSING[key] if value == "???" else value for key, value in node.items()}, role)


@cache
def whole() -> dict[str, Any]:
    """The default config, its interpolations unresolved."""
    composed = start(Request(conf_dir(), [])).compose_config("config", [], run_mode())
    return {str(key): value for key, value in OmegaConf.to_container(composed, resolve=False).items() if key != "hydra"}
