"""The saved state: nested tensors, texts and numbers, with the config of the run.

It is written under a temporary name, synced and renamed. The previous state is kept, so that a damaged file costs some
rounds and not the run.
"""

import logging
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fedexp.config import roles
from fedexp.core.errors import ConfigError
from fedexp.core.nested import flatten_keys
from fedexp.core.values import Layout, State, Weights
from fedexp.files.atomic import atomic_path, display_path
from fedexp.files.run_tables import has_rounds
from fedexp.files.untrusted import is_stored
from fedexp.run.state.state_parts import EARLIER, is_complete_state

log = logging.getLogger(__name__)

FORMAT = 1
NAME, PREVIOUS, STATES_FOLDER = "state.pt", "state.previous.pt", "states"
NEUTRAL_KEYS = ("data_dir", "checkpoint_s", "keep_states", "pictures", "hydra")  # keys that change no result
REPORT_KEYS = ("evaluation.roa", "evaluation.toa")  # as do these: what is told of a result


def save(
    folder: Path,
    state: State,
    config: dict[str, Any],
    engine: dict[str, str],
    surroundings: list[dict[str, str]] | None = None,
    inputs: dict[str, str] | None = None,
) -> None:
    """Writes the state; the newest state so far becomes the previous one.

    `surroundings` are the environments of its rounds, the present one last; `inputs` are digests of what is read.
    """
    *earlier, present = surroundings or [{}]
    content = {
        "format": FORMAT,
        "config": config,
        "engine": engine,
        "surroundings": present,
        EARLIER: earlier,
        "inputs": inputs or {},
        "round": state.round,
        "models": [(weights.flat.cpu(), _layout(weights.layout)) for weights in state.models],
        "memory": _to_device(state.memory, torch.device("cpu")),
        "sim_s": state.sim_s,
        "host_s": state.host_s,
        "updates": state.updates,
    }
    newest, previous = folder / NAME, folder / PREVIOUS
    with atomic_path(newest) as temporary:
        _write(content, temporary)
        if newest.exists():
            newest.replace(previous)


def _write(content: dict[str, Any], path: Path) -> None:
    """Writes the file; a full disk and Ctrl-C, which torch reports as another error, are raised as themselves."""
    try:
        with path.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())  # before the older state is renamed
    except RuntimeError as error:
        if isinstance(error.__context__, (OSError, KeyboardInterrupt)):
            raise error.__context__ from None
        raise


def keep(folder: Path, number: int) -> None:
    """Copies the newest state, which must be that of this round, into `states/`."""
    with atomic_path(folder / STATES_FOLDER / f"{number:06d}.pt") as copy:
        shutil.copyfile(folder / NAME, copy)


def list_states(folder: Path) -> list[Path]:
    """All states of a folder, the newest last."""
    paths = [*sorted((folder / STATES_FOLDER).glob("*.pt")), folder / PREVIOUS, folder / NAME]
    return [path for path in paths if path.exists()]


@dataclass(frozen=True)
class Checkpoint:
    """A state read from a file, with the engine that made it, and digests of what the run reads.

    `surroundings` are the environments of its rounds, as far as they are known; the last one is that of the last round.
    """

    state: State
    engine: dict[str, str]
    surroundings: list[dict[str, str]]
    inputs: dict[str, str]


def read(path: Path, config: dict[str, Any], device: torch.device) -> Checkpoint | None:
    """The state of a file; None where the file is damaged.

    Raises:
        ConfigError: the state belongs to another config; names the keys that differ.
    """
    content = _read(path)
    if content is None:
        return None
    if changed := changed_keys(content["config"], config):
        raise ConfigError(f"{path} belongs to another config: {changed}; restore these keys or start a new run")
    environments = [*content.get(EARLIER, []), content.get("surroundings", {})]
    parsed, surroundings = _parse_state(content, device), [environment for environment in environments if environment]
    return Checkpoint(parsed, content["engine"], surroundings, content.get("inputs", {}))


def load(
    folder: Path, config: dict[str, Any], device: torch.device, objection: Callable[[State], str] = lambda _: ""
) -> Checkpoint | None:
    """The newest state that can be read and meets no objection, with the engine that made it; None without a state.

    It becomes the folder's newest state.

    Raises:
        ConfigError: the state belongs to another config (names the keys that differ), or there is an objection to every
            state that can be read.
    """
    refused = []
    for path in reversed(list_states(folder)):
        checkpoint = read(path, config, device)
        reason = "is damaged" if checkpoint is None else objection(checkpoint.state)
        if checkpoint is not None and not reason:
            if path.name != NAME:
                with atomic_path(folder / NAME) as copy:
                    shutil.copyfile(path, copy)
            if refused:
                log.warning("%s; falling back to the state after round %d", "; ".join(refused), checkpoint.state.round)
            return checkpoint
        refused.append(f"{display_path(path)} {reason}")
    if not refused:
        if has_rounds(folder):
            log.warning("%s has a metrics.csv, but no saved state; starting over", display_path(folder))
        return None
    if all(reason.endswith("is damaged") for reason in refused):
        log.warning("%s; starting over", "; ".join(refused))
        return None
    raise ConfigError(f"{'; '.join(refused)}; put the files back as they were, or delete the states to begin again")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        if not _is_intact(path):
            return None
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # a pickle that was changed may raise anything
        return None
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        return None
    if content["format"] != FORMAT:
        raise ConfigError(
            f"{path} has format {content['format']}, but this version reads {FORMAT}; resume with the fedexp that "
            "wrote it"
        )
    return content if is_complete_state(content) else None


def _is_intact(path: Path) -> bool:
    """Whether every record matches its checksum, which torch.load does not check, and none is marked as a folder."""
    if not is_stored(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return archive.testzip() is None and not any(record.external_attr & 0x10 for record in archive.infolist())


def changed_keys(saved: dict[str, Any], config: dict[str, Any]) -> str:
    """The keys whose values differ from the saved ones, except those that change no result; empty if there are none.

    A role that does nothing is as good as one that is not there, as in runs of versions that did not have it.
    """
    old, new = flatten_keys(saved), flatten_keys(config)
    changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    idle = (role.name for role in roles.all_roles() if role.is_idle(saved) and role.is_idle(config))
    free = {*NEUTRAL_KEYS, *idle}
    binding = [
        key
        for key in changed
        if key not in REPORT_KEYS and key.split(".")[0] not in free and not roles.changes_no_result(key)
    ]
    return ", ".join(f"{key} (then {old.get(key)!r}, now {new.get(key)!r})" for key in binding[:8])


def _layout(layout: Layout) -> dict[str, Any]:
    return {"names": list(layout.names), "shapes": [list(s) for s in layout.shapes], "trainable": layout.trainable}


def _parse_state(content: dict[str, Any], device: torch.device) -> State:
    models = tuple(
        Weights(
            flat.to(device),
            Layout(tuple(layout["names"]), tuple(tuple(s) for s in layout["shapes"]), layout["trainable"]),
        )
        for flat, layout in content["models"]
    )
    on_host = roles.role_names(on_host=True)
    memory = {
        role: role_memory if role in on_host else _to_device(role_memory, device)
        for role, role_memory in content["memory"].items()
    }
    return State(content["round"], models, memory, content["sim_s"], content["host_s"], content["updates"])


def _to_device(node: Any, device: torch.device) -> Any:
    """A copy with all float tensors on the device; tensors of whole numbers (client lists) stay on the host."""
    if isinstance(node, torch.Tensor):
        return node.to(device) if node.is_floating_point() else node
    if isinstance(node, dict):
        return {name: _to_device(child, device) for name, child in node.items()}
    if isinstance(node, tuple | list):
        return tuple(_to_device(child, device) for child in node)
    return node
