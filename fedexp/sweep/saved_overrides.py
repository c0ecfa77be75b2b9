"""What a resumed sweep takes from its `multirun.yaml`: settings, and Hydra's sweeper, launcher and subfolder.

Everything else that Hydra would obey (loggers, callbacks, search paths, an environment, ...) comes from `conf/` again.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from fedexp.config.launchers import HYDRA_OPTIONS
from fedexp.core.errors import ConfigError, first_line
from fedexp.core.nested import lookup
from fedexp.files.atomic import display_path
from fedexp.files.url_credentials import ADDRESS_VARIABLE
from fedexp.sweep import point_list

NUMBERS = ("jobs", "runs", "parallel", "timeout_min", "cpus_per_task", "gpus_per_node", "cpus", "gpus")
MOST_COPIES = 10**6  # of a value that words repeat, each those of another: `b=${a}${a}`, `c=${b}${b}`, ...
_OPTION = re.compile(r"[\w-]+(/[\w-]+)*")
_RESOLVERS = "data_root|usable_cores|likely_malicious|oc.select|now|hydra"
_REFERENCE = re.compile(rf"\$\{{\s*([\w.-]+\s*\}}|({_RESOLVERS})\s*:|oc.env\s*:\s*{ADDRESS_VARIABLE}\s*[,}}])")


def read_overrides(saved: Mapping[str, Any], typed: Sequence[str], path: Path) -> list[str]:
    """Reads the words that compose a saved sweep again, to be followed by those that are typed now.

    Raises:
        ConfigError: they are not words, would change Hydra itself, lead out of the folder, or say where to compute.
    """
    task, hydra = (_parse_words(lookup(saved, f"hydra.overrides.{name}"), path) for name in ("task", "hydra"))
    for word in task:
        _demand_setting(word, path)
    typed_keys = {word.partition("=")[0] for word in typed}
    other_launcher = "hydra/launcher" in typed_keys  # keys of one launcher do not fit another
    hydra = [word for word in hydra if not (other_launcher and _key(word).startswith("hydra.launcher."))]
    accepted_words = [word.input_line for word in hydra if _key(word) not in typed_keys and _is_accepted(word, path)]
    return [str(text) for text in [*(word.input_line for word in task), *accepted_words]]


def read_config_name(saved: Mapping[str, Any], path: Path) -> str:
    """Reads the name of the root config."""
    config_name = lookup(saved, "hydra.job.config_name")
    if not isinstance(config_name, str) or not _OPTION.fullmatch(config_name):
        raise ConfigError(
            f"{display_path(path)}: hydra.job.config_name must be the name of a config, got {config_name!r}"
        )
    return config_name


def read_config_dir(saved: Mapping[str, Any]) -> Path | None:
    """Reads the --config-dir of the command that began the sweep; None if it had none."""
    sources = lookup(saved, "hydra.runtime.config_sources")
    nodes = (source for source in sources or () if isinstance(source, Mapping)) if isinstance(sources, list) else ()
    typed_paths = [source.get("path") for source in nodes if source.get("provider") == "command-line"]
    return Path(typed_paths[0]) if typed_paths and isinstance(typed_paths[0], str) else None


def refuse_hydra(overrides: Sequence[str], path: Path) -> None:
    """Refuses the overrides of a point, read from a file, if they would change Hydra itself."""
    for word in _parse_words(list(overrides), path):
        _demand_setting(word, path)


def _demand_setting(word: Override, path: Path) -> None:
    if re.match(r"hydra\b", _key(word)) or re.match(r"hydra\b", word.package or ""):
        raise ConfigError(
            f"{display_path(path)}: a setting must be one of the experiment's, got {word.input_line}; remove it"
        )
    _demand_plain_references(word, path)
    chooses = "." not in _key(word) and _key(word) not in ("data_dir", point_list.NAME)  # its points are checked apart
    if chooses and "../" in str(word.input_line):
        raise ConfigError(f"{display_path(path)}: an option must be one of conf/, got {word.input_line}; remove it")


def _demand_plain_references(word: Override, path: Path) -> None:
    """Refuses a word that could read more than the config itself, such as the environment of who resumes."""
    text = _unescape(str(word.input_line))
    if len(_REFERENCE.findall(text)) < text.count("${"):
        raise ConfigError(
            f"{display_path(path)}: a setting must refer to keys of the config alone, got {text}; write the value in "
            "its place"
        )


def _is_accepted(word: Override, path: Path) -> bool:
    """Whether a saved word about Hydra is used; words that cannot change the sweep's results are ignored."""
    key, value = _key(word), None if word.is_delete() else word.value()
    if key.startswith(("hydra.sweep.", "hydra.sweeper.", "hydra.launcher.")):
        _demand_plain_references(word, path)
    if key in HYDRA_OPTIONS:
        return _demand(value in HYDRA_OPTIONS[key], word, f"one of {', '.join(HYDRA_OPTIONS[key])}", path)
    if key == "hydra.sweep.subdir":
        inside = isinstance(value, str) and ".." not in Path(value).parts and not Path(value).is_absolute()
        return _demand(inside, word, "a path below the sweep's folder", path)
    if key.startswith("hydra.sweeper.params"):  # it yields settings, which are checked as such
        single = re.fullmatch(r"hydra\.sweeper\.params\.(?!hydra$)\w+", key) and type(value) in (str, int, float)
        return _demand(bool(single), word, "a text or number for a key of its own", path)
    if not key.startswith("hydra.launcher."):
        return False
    if key.removeprefix("hydra.launcher.") in NUMBERS:
        return _demand(type(value) in (int, float, type(None)), word, "a number", path)
    raise ConfigError(
        f"{display_path(path)} says where to compute: {word.input_line}; if that is right, type it again, "
        "or another hydra/launcher="
    )


def _demand(right: bool, word: Override, wanted: str, path: Path) -> bool:
    if not right:
        raise ConfigError(f"{display_path(path)}: {_key(word)} must be {wanted}, got {word.input_line}; restore it")
    return True


def _parse_words(texts: Any, path: Path) -> list[Override]:
    if not isinstance(texts, list) or not all(isinstance(word, str) for word in texts):
        raise ConfigError(f"{display_path(path)} must hold the words of a sweep as texts; restore it")
    if math.prod(max(1, _unescape(text).count("${")) for text in texts) > MOST_COPIES:
        raise ConfigError(f"{display_path(path)} must have fewer references in the words of a sweep; write values out")
    try:
        return OverridesParser.create().parse_overrides(texts)
    except HydraException as error:
        raise ConfigError(f"{display_path(path)} must hold the words of a sweep: {first_line(error)}") from error


def _unescape(text: str) -> str:
    """A word without backslashes: Hydra reads escaped braces as those of a reference."""
    return text.replace("\\", "")


def _key(word: Override) -> str:
    return word.key_or_group.lstrip("/")
