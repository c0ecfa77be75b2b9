"""Keys of a config that do nothing in a run, because another key turns off what they are about."""

from collections.abc import Mapping
from typing import Any

from fedexp.report.read.runs import Run

SOURCES = {  # what parts may follow, and no more: where each would be
    "scenario.local_lr": "local.lr",
    "scenario.local_epochs": "local.epochs",
    "scenario.byzantine": "aggregator.byzantine",
    "scenario.participants": "selector.count",
    "scenario.clients": "federation.clients",
}
_ADAM = ("beta1", "beta2", "eps")
_OF_OTHER_OPTIMIZERS = {"sgd": _ADAM, "adam": ("momentum", "nesterov"), "adamw": ("momentum", "nesterov")}
_AGGREGATING = ("pre_aggregation", "aggregator", "server_optimizer")
MARK = "idle"


def is_idle(run: Run, key: str) -> bool:
    """Whether the run would be the same with another value of this key."""
    group, _, name = key.rpartition(".")
    optimizer = run.config.get(f"{group}.optimizer")
    return (
        is_unused_source(run.raw_config, key)
        or name in _OF_OTHER_OPTIMIZERS.get(str(optimizer), ())
        or (group.partition(".")[0] in _AGGREGATING and run.config.get("scenario.training") == "local")
        or _concerns_nobody(run.config, run.summary or {}, key)
    )


def is_unused_source(raw_config: Mapping[str, Any], key: str) -> bool:
    """Whether all that usually refers to this key has a value of its own, in a flat config with its interpolations."""
    written = {name: str(value) for name, value in raw_config.items() if "${" in str(value)}
    if key not in SOURCES or not any(map(_is_of_part, written)):
        return False
    followers = [name for name, text in written.items() if refers_to(text, key)]
    return all(not _is_of_part(name) and is_unused_source(raw_config, name) for name in followers)


def refers_to(raw_value: Any, key: str) -> bool:
    """Whether a value with its interpolations takes what this key has."""
    return f"{{{key}}}" in str(raw_value)


def _is_of_part(key: str) -> bool:
    return not key.startswith("scenario.")


def _concerns_nobody(config: Mapping[str, Any], summary: Mapping[str, Any], key: str) -> bool:
    """Whether a key is about attackers, validation data or clients' own models, and the run has none."""
    if key.startswith("attack.") or key == "scenario.malicious_hold_data":
        return config.get("scenario.malicious") == 0
    if key in ("evaluation.validation_fraction", "evaluation.validation_at"):
        return "validation_examples" in summary and not summary["validation_examples"]
    if key == "evaluation.personal_split":
        return not config.get("evaluation.personal_fraction")
    measured = ("personal_fraction", "own_test", "unseen_fraction")
    measures_clients = any(config.get(f"evaluation.{name}") for name in measured)
    measures_clients |= config.get("scenario.training") == "local" or config.get("evaluation.validation_at") is not None
    return key == "evaluation.personal_clients" and not measures_clients
