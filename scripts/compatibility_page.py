"""What goes together: the rows of `fedexp/simulation/setup/incompatible_pairs.py`, with the options they speak of."""

from functools import cache
from textwrap import fill
from typing import Any

from fedexp.config import catalog, roles
from fedexp.config.location import conf_dir
from fedexp.core.part import build
from fedexp.simulation.setup.incompatibility import SETTINGS, Incompatibility, has_flag
from fedexp.simulation.setup.incompatible_pairs import ROWS
from fedexp.simulation.setup.row_groups import METHODS, needs_all_rows
from tests.composing import config

GIVEN = {  # what must be given
    "dataset": {"path": "mine.npz"},
    "federation": {"path": "who.csv"},
    "availability": {"path": "when.csv"},
    "privacy": {"clip": 1.0, "delta": 1e-5, "noise_multiplier": 1.0},
    "stop": {"epsilon": 1.0},
}
VALUES = {"evaluation.local_models": "evaluation.local_models=true"}  # of settings that stand without one


def lines() -> list[str]:
    """A line for each thing that cannot be, below the role that asks for it."""
    found: list[str] = []
    for role in dict.fromkeys(row.role for row in ROWS):
        found += [f"### {role}", "", *(told(row) for row in ROWS if row.role == role), ""]
    return found


def row_lines() -> list[str]:
    """A line for each group with options that need the rows of all clients at once."""
    found = []
    for role in (role for role in roles.ROLES if role.step or role.name in METHODS):
        readers = [
            option for option in catalog.options(conf_dir(), role.name) if needs_all_rows(part(role.name, option), role)
        ]
        if readers:
            found += [fill(f"* `{role.name}={', '.join(readers)}`", 120, subsequent_indent="  ")]
    return [*found, "* `evaluation.local_models=true`"]


def told(row: Incompatibility) -> str:
    """One row in words."""
    who, other = words(row.role, row.flag), words(row.other_role, row.other_flag)
    because, but = said(row.because, row.role, row.flag), said(row.but, row.other_role, row.other_flag)
    return fill(f"{who} {because}, but {other} {but}: use {row.use}", 120, initial_indent="* ", subsequent_indent="  ")


def words(role: str, flag: str) -> str:
    """Whose flag is so, as words of the command line."""
    if (role, flag) in SETTINGS:
        return f"`{VALUES.get(SETTINGS[role, flag], SETTINGS[role, flag])}`"
    return f"`{role}={', '.join(options(role, flag))}`" if role else "the server"


def said(text: str, role: str, flag: str) -> str:
    """What a row says of these options; where they say it themselves, all that they say."""
    if "{" not in text:
        return text
    return " or ".join(dict.fromkeys(text.format(part=part(role, option)) for option in options(role, flag)))


def options(role: str, flag: str) -> list[str]:
    """The options of a role whose part has a flag, or has it not where the flag begins with `not`."""
    return [option for option in catalog.options(conf_dir(), role) if has_flag(part(role, option), flag)]


@cache
def part(role: str, option: str) -> Any:
    """The part of an option, with whatever must be given."""
    return build(whole(f"{role}={option}")[role], role)


def whole(*overrides: str) -> dict[str, Any]:
    """The config of a run with whatever must be given."""
    made = config(*overrides)
    for role, values in GIVEN.items():
        node = made[role]
        node |= {key: value for key, value in values.items() if key in node and node[key] in (None, "???")}
    return made


if __name__ == "__main__":
    print("\n".join(lines()))
