"""Digests of what a run reads: it must not go on with other data, clients or files than it began with."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from fedexp.config import roles
from fedexp.core.errors import ConfigError
from fedexp.core.part import describe_choice
from fedexp.data.store import digest
from fedexp.files.atomic import display_path
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World

DATA, CLIENTS = "data", "clients"


def digest_inputs(world: World) -> dict[str, str]:
    """The digests of the data, of who holds which examples, and of the files that other parts name, by key."""
    digests = {DATA: world.data_sha256, CLIENTS: world.sites.sha256()}
    for role in roles.role_names(changes_results=True):
        part = world.exp.part(role)
        values = {f"{role}.{field.name}": getattr(part, field.name) for field in fields(part)}
        for key, path in values.items():
            if role != "dataset" and isinstance(path, Path) and path.is_file():  # the data have a digest of their own
                digests[key] = digest(path, "sha256")
    return digests


def changed_inputs(saved: Mapping[str, str], now: Mapping[str, str], exp: Experiment) -> list[str]:
    """What is not as it was when a run began, in words, given the digests that were `saved` and those of `now`."""
    words = {
        DATA: f"the data of {describe_choice('dataset', exp.dataset)}",
        CLIENTS: f"who holds which examples by {describe_choice('federation', exp.federation)}",
    }
    return [words.get(key, f"the file of {key}") for key, value in saved.items() if now.get(key, value) != value]


def refuse_changed_inputs(
    folder: Path, saved: Mapping[str, str], now: Mapping[str, str], exp: Experiment, cannot: str = "go on"
) -> None:
    """Raises ConfigError where the digests of `now` are not those that were `saved`.

    `cannot` says what the folder is then of no use for.
    """
    if changed := changed_inputs(saved, now, exp):
        raise ConfigError(
            f"{display_path(folder)} cannot {cannot}, since {' and '.join(changed)} changed after the run began; put "
            "back what was there, or begin a new run"
        )
