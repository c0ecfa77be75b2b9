"""A number that somebody published, and how it is read from a table, with the checks that all its nodes share."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.core.fields import describe_type, fits

LARGEST = sys.float_info.max
LEAST = {"value": -LARGEST, "spread": 0, "runs": 1, "rounding": 0, "examples": 1}


@dataclass(frozen=True)
class Published:
    """A number that somebody published: of one run, or a mean with its standard deviation `spread` over `runs`.

    `rounding` is half a unit of its last digit. `beyond` means more than the value. `where` is its place in the source.
    `examples` is on how many an accuracy of a single run was measured, if they were so few that chance moved it.
    """

    value: float
    spread: float | None = None
    runs: int = 1
    rounding: float = 0.0
    beyond: bool = False
    where: str = ""
    examples: int | None = None


def parse_replication(node: Any, where: str) -> tuple[str, Published]:
    """Reads who ran the setting again, and the number that came out."""
    author = node.get("by") if isinstance(node, Mapping) else None
    if not isinstance(author, str) or not author:
        raise ConfigError(f"{where} must say by whom they are, got {node!r}")
    return author, parse_published({key: value for key, value in node.items() if key != "by"}, where)


def parse_published(node: Any, where: str) -> Published:
    """Reads a published number from its node in a table."""
    kinds = {field.name: field.type for field in fields(Published)}
    demand(node, kinds, ("value",), where)
    published_number = Published(**node)
    for key, least in LEAST.items():
        if (value := getattr(published_number, key)) is not None:
            demand_within(where, key, value, least)
    if (published_number.spread is None) != (published_number.runs == 1):
        raise ConfigError(
            f"{where} must have spread and runs (at least 2) together, or neither for a single run, got {node}"
        )
    if published_number.examples is not None and (published_number.spread is not None or published_number.value > 1):
        raise ConfigError(
            f"{where}: examples must stand with an accuracy (up to 1) of a single run, without spread, got {node}"
        )
    if published_number.beyond and published_number.spread is not None:
        raise ConfigError(f"{where}: beyond must stand with a single number, without spread, got {node}")
    return published_number


def demand_within(where: str, key: str, value: float, least: float, most: float = LARGEST) -> None:
    """Raises ConfigError where a number of a node lies outside its range."""
    if not least <= value <= most:
        must = "finite" if abs(value) > LARGEST else f"at least {least}" if value < least else f"at most {most:,}"
        raise ConfigError(f"{where}: {key} must be {must}, got {str(value)[:40]}")


def demand(node: Any, kinds: Mapping[str, Any], required_keys: Sequence[str], where: str) -> None:
    """Raises ConfigError where a node is no mapping with keys of these kinds, or lacks one that is needed."""
    if not isinstance(node, Mapping):
        raise ConfigError(f"{where} must hold keys and values, got {node!r}")
    for key in required_keys:
        if key not in node:
            raise ConfigError(f"{where}: {key} must be given")
    for key, value in node.items():
        if key not in kinds:
            raise ConfigError(f"{where}: unknown key {key}; {did_you_mean(str(key), list(kinds))}")
        if not fits(kinds[key], value):
            raise ConfigError(f"{where}: {key} must be {describe_type(kinds[key])}, got {value!r}")
