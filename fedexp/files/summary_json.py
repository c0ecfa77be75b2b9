"""The one reader of summary.json: every value must be of the kind that a run writes, or the file is refused."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.untrusted_json import read_json

NAME = "summary.json"

_NUMBERS = ("host_s", "sim_s", "label_skew", "size_gini")
_OF_METRICS = re.compile(r"(final|best)_.*|.*_auc", re.DOTALL)  # keys that are numbers, too
_PLAIN = re.compile(r"(final|best)_\w+|[\w.]+_auc")  # how such keys are written
_COUNTS = ("rounds", "updates", "clients", "parameters", "public_examples", "validation_examples", "skipped_rounds")
_TEXTS = ("stopped", "constant_answer", "data_sha256", "split_sha256", "device", "instructions")
_NODES = ("roa", "toa", "privacy", "audit", "versions", "git", "engine", "label_distances", "size_spread")
_KINDS = {
    **dict.fromkeys(_NUMBERS, "a number"),
    **dict.fromkeys(_COUNTS, "a whole number"),
    **dict.fromkeys(_TEXTS, "a text"),
    **dict.fromkeys(_NODES, "a mapping"),
    "malicious_clients": "a list",
    "without_effect": "a list",
}
_INNER = {
    "roa": (None, "a number"),  # None: under any name
    "toa": (None, "a number"),
    "versions": (None, "a text"),
    "engine": (("name", "reason"), "a text"),
    "git": (("commit",), "a text"),
    "size_spread": (None, "a number"),
    "privacy": (("promise",), "a text"),
    "audit": (("statement",), "a text"),
}


def read(folder: Path) -> dict[str, Any] | None:
    """The summary of a run folder; None if there is none yet. A value that does not exist is null.

    Raises:
        ConfigError: it is not JSON, or a value in it is of the wrong kind.
    """
    path = folder / NAME
    summary = read_json(path)
    if summary is None:
        return None
    for name, kind in _KINDS.items():
        _demand(path, name, summary.get(name), kind)
    for name in filter(_OF_METRICS.fullmatch, summary):
        if not _PLAIN.fullmatch(name):
            raise ConfigError(
                f"{display_path(path)} must have names of letters, digits and _, got {repr(name)[:60]}; is it damaged?"
            )
        _demand(path, name, summary[name], "a number")
    for name, (inner, kind) in _INNER.items():
        node = summary.get(name) or {}
        for key in node if inner is None else inner:
            _demand(path, f"{name}.{key}", node.get(key), kind)
    return summary


def main_metric(summary: Mapping[str, Any]) -> str:
    """The name of the metric that a summary is about, whose last value it calls `final_NAME`."""
    return next((key.removeprefix("final_") for key in summary if key.startswith("final_")), "accuracy")


def _demand(path: Path, name: str, value: Any, kind: str) -> None:
    if value is not None and not _is_kind(value, kind):
        raise ConfigError(f"{display_path(path)} must have {kind} as {name}, got {repr(value)[:60]}; is it damaged?")


def _is_kind(value: Any, kind: str) -> bool:
    if kind == "a number":
        return type(value) in (int, float) and math.isfinite(value)
    if kind == "a whole number":
        return type(value) is int and 0 <= value < 10**15
    return isinstance(value, {"a text": str, "a list": list}.get(kind, Mapping))
