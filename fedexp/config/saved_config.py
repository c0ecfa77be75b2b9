"""Saves and reads what a run folder says of its config: `config.json`, which is all that is ever read back.

For people the three files that Hydra would leave lie beside it in `.hydra/`; `fedexp verify` says whether they agree.
Each file is whole or absent, and `config.json` comes last. No password of an address is noted.
"""

import json
import os
import re
import shlex
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from fedexp.config import own_modules
from fedexp.config.override_text import key_of
from fedexp.config.resolvers import local_values, with_environment
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError
from fedexp.core.nested import flatten_keys
from fedexp.files import run_tables
from fedexp.files.atomic import display_path, write_atomically
from fedexp.files.untrusted_json import read_json
from fedexp.files.untrusted_yaml import read_yaml_list
from fedexp.files.url_credentials import ADDRESS_VARIABLE, without_password, without_passwords

NAME, FOLDER, FILES = "config.json", ".hydra", ("hydra", "overrides", "config")


@dataclass(frozen=True)
class SavedConfig:
    """What `config.json` holds.

    `config` is resolved; `references` are those of its values that follow other keys, as they were written, by dotted
    key. `choices` are the options of all groups, Hydra's own too, and `overrides` the words that were typed. `modules`
    are the digests of the modules of one's own that it names.
    """

    config: dict[str, Any]
    references: dict[str, Any]
    choices: dict[str, str | None]
    overrides: list[str]
    modules: dict[str, str] = field(default_factory=dict)

    @property
    def raw_config(self) -> dict[str, Any]:
        """The config before it was resolved."""
        return _with_values(self.config, self.references)


def save(folder: Path, composed: DictConfig, config: dict[str, Any]) -> None:
    """Saves a run's composed config, with Hydra's node, and the same resolved; replaces what is there."""
    (folder / NAME).unlink(missing_ok=True)
    with open_dict(composed):
        composed.hydra.runtime.output_dir = str(folder.absolute())
    hydra_config, words = OmegaConf.masked_copy(composed, ["hydra"]), composed.hydra.overrides.task
    written = with_environment(OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"]))
    for name, content in zip(FILES, (hydra_config, words, written), strict=True):
        write_atomically(yaml_path(folder, name), as_text(content).encode())
    references = {key: value for key, value in flatten_keys(_plain(written)).items() if "${" in str(value)}
    choices = _plain(composed.hydra.runtime.choices)
    write(folder, SavedConfig(config, references, choices, _plain(words), own_modules.module_digests(config)))


def save_once(folder: Path, composed: DictConfig, config: dict[str, Any]) -> None:
    """Saves a run's config where there is none yet.

    Raises:
        ConfigError: the one that is there was made of other words.
    """
    if not exists(folder):
        save(folder, composed, config)
        return
    saved, wanted = set(read(folder).overrides), set(_plain(composed.hydra.overrides.task))
    if saved != wanted:
        missing, extra = (" ".join(sorted(words)) or "nothing else" for words in (wanted - saved, saved - wanted))
        raise ConfigError(
            f"{display_path(folder)} must be a run with {missing}, got one with {extra}; move it away, and it is run "
            "again"
        )


def replace_part(folder: Path, role: str, node: dict[str, Any]) -> None:
    """Replaces the part of one role in the saved config."""
    saved = read(folder)
    references = {key: value for key, value in saved.references.items() if key.partition(".")[0] != role}
    saved = replace(saved, config={**saved.config, role: without_passwords(node)}, references=references)
    write_atomically(yaml_path(folder, "config"), yaml.safe_dump(saved.raw_config, sort_keys=False).encode())
    write(folder, saved)


def read_shared(folder: Path, *, with_seed: bool) -> SavedConfig:
    """The config of a folder as others see it; without the seed only who guesses it can draw again what was drawn."""
    saved = read(folder)
    if with_seed:
        return saved
    words = [word for word in saved.overrides if not is_seed(word)]
    hidden = dict.fromkeys(["seed", *following_keys(saved.references, {"seed"})])
    return replace(saved, config=_with_values(saved.config, hidden), overrides=words)


def following_keys(references: dict[str, Any], names: set[str]) -> list[str]:
    """The keys whose reference leads to a key that ends in one of these words, also by way of another key."""
    waiting = {key: {*re.findall(r"\w+", str(text))} for key, text in references.items()}
    following: list[str] = []
    while followers := [key for key, words in waiting.items() if not names.isdisjoint(words)]:
        names = {key.rpartition(".")[2] for key in followers}
        following += followers
        for key in followers:
            del waiting[key]
    return following


def is_seed(word: str) -> bool:
    """Whether a typed word sets the seed."""
    return key_of(word) == "seed"


def write(folder: Path, saved: SavedConfig) -> None:
    """Writes the `config.json` of a folder, whole or not at all."""
    text = json.dumps(asdict(saved), indent=2, ensure_ascii=False)
    write_atomically(folder / NAME, f"{text}\n".encode())


def as_text(content: DictConfig | ListConfig) -> str:
    """A config as YAML, with unresolved interpolations."""
    return OmegaConf.to_yaml(OmegaConf.create(_plain(content)))


def _plain(content: DictConfig | ListConfig) -> Any:
    return without_passwords(OmegaConf.to_container(content, resolve=False))


def exists(folder: Path) -> bool:
    """Whether the config is there."""
    return (folder / NAME).is_file()


def yaml_path(folder: Path, name: str) -> Path:
    """Where the file of this name lies that Hydra would leave."""
    return folder / FOLDER / f"{name}.yaml"


def read_config(folder: Path, trust: Trust = NO_TRUST, roles: Collection[str] | None = None) -> dict[str, Any]:
    """The config that is saved in a run folder, to be run; only the parts of these `roles` will be (None: all).

    Raises:
        ConfigError: there is none, it cannot be read, or it names modules beyond those that are trusted, or that have
            changed since.
    """
    saved = read(folder)
    config = _for_this_machine(saved)
    used = config if roles is None else {role: config.get(role) for role in roles}
    trust.refuse_untrusted(used, folder)
    if objection := _module_objection(saved, used, folder, trust):
        raise ConfigError(objection)
    return config


def _module_objection(saved: SavedConfig, used: dict[str, Any], folder: Path, trust: Trust) -> str | None:
    """Which module of the `used` config has changed since the folder's first round."""
    return None if _is_unbegun(folder) else own_modules.objection(saved.modules, used, folder, trust)


def _is_unbegun(folder: Path) -> bool:
    """Whether a run folder has no round yet, so that nothing was made with its modules; an export is none."""
    return (folder / FOLDER).is_dir() and not run_tables.has_rounds(folder)


def renew_digests(folder: Path) -> None:
    """Notes the modules as they are now, in the folder of a run that is about to begin."""
    saved = read(folder)
    if (digests := own_modules.module_digests(saved.config)) != saved.modules:
        write(folder, replace(saved, modules=digests))


def refuse_changed_below(folder: Path, trust: Trust) -> None:
    """Refuses a folder with runs below that were made with other modules than are here now; raises `ConfigError`."""
    for path in folder.rglob(NAME):
        objection = None
        with suppress(ConfigError):  # of a damaged run speaks whoever goes on with it
            saved = read(path.parent)
            objection = _module_objection(saved, saved.config, path.parent, trust)
        if objection:
            raise ConfigError(objection)


def _for_this_machine(saved: SavedConfig) -> dict[str, Any]:
    """The config with what the machine decides: where data lies, how many cores there are, MLflow's address."""
    values = local_values()
    directory = values.get(str(saved.references.get("data_dir")), saved.config.get("data_dir"))
    values |= {"${data_dir}": directory}
    follows = {key: values[text] for key, text in saved.references.items() if isinstance(text, str) and text in values}
    if (address := os.environ.get(ADDRESS_VARIABLE)) and ADDRESS_VARIABLE in str(saved.references.get("tracker.uri")):
        follows["tracker.uri"] = without_password(address)
    return _with_values(saved.config, follows)


def read(folder: Path) -> SavedConfig:
    """What `config.json` of a run folder says.

    Raises:
        ConfigError: there is none, or it cannot be read.
    """
    content = read_json(folder / NAME)
    if content is None:
        raise ConfigError(_missing_message(folder))
    config, references, choices, overrides, modules = (content.get(column.name) for column in fields(SavedConfig))
    modules = {} if modules is None else modules  # versions before had none
    is_valid = {
        "config": isinstance(config, dict) and isinstance(config.get("_target_"), str),
        "references": isinstance(references, dict) and all("${" in str(text) for text in references.values()),
        "choices": isinstance(choices, dict) and all(isinstance(option, str | None) for option in choices.values()),
        "overrides": isinstance(overrides, list) and all(isinstance(word, str) for word in overrides),
        "modules": isinstance(modules, dict) and all(isinstance(digest, str) for digest in modules.values()),
    }
    for name, valid in is_valid.items():
        if not valid:
            where, value = display_path(folder / NAME), repr(content.get(name))[:60]
            raise ConfigError(f"{where} must have {name} as a run saves them, got {value}; restore it")
    return SavedConfig(config, references, choices, overrides, modules)  # type: ignore[arg-type]


def _with_values(node: dict[str, Any], values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    return {
        name: values.get(f"{prefix}{name}", _with_values(child, values, f"{prefix}{name}."))
        if isinstance(child, dict)
        else values.get(f"{prefix}{name}", child)
        for name, child in node.items()
    }


def _missing_message(folder: Path) -> str:
    if any((folder / name).is_file() and (folder / name).stat().st_size for name in ("metrics.csv", "state.pt")):
        return (
            f"{display_path(folder)} has rounds but no {NAME}; restore it, or run again what a version before 0.1.0 ran"
        )
    if not (folder / FOLDER).is_dir():
        return f"{display_path(folder)} is no run folder: it has no {NAME}; give a folder that fedexp run has made"
    words = [*map(str, read_yaml_list(yaml_path(folder, "overrides"))), f"hydra.run.dir={display_path(folder)}"]
    return (
        f"{display_path(folder)} was cut off before its config was written; begin again: fedexp run {shlex.join(words)}"
    )
