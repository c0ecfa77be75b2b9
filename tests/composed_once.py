"""Hydra reads each file of `conf/` once a process, and puts each choice of options together once.

Thousands of tests choose the same few options, and Hydra takes a quarter of a second to put a run together. Values that
are set and points of sweeps are composed anew each time, and so is a folder of a test's own that has changed. A Python
that a test starts has none of this.
"""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, wraps
from itertools import islice
from pathlib import Path
from typing import Any

import omegaconf.base
from hydra import version
from hydra._internal import config_loader_impl, defaults_list
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository, IConfigRepository
from hydra._internal.defaults_list import DefaultsList, Overrides
from hydra.core.config_store import ConfigStore
from hydra.core.default_element import InputDefault, ResultDefault
from hydra.core.override_parser.types import Override
from hydra.plugins.config_source import ConfigResult, ConfigSource
from omegaconf import DictConfig

from fedexp.config.location import conf_dir

Known = tuple[Any, ...]
CONF = f"file://{conf_dir()}"
FEW = 30
PATCHED: tuple[tuple[Any, str], ...] = (
    (ConfigRepository, "load_config"),
    (config_loader_impl, "create_defaults_list"),
    (ConfigLoaderImpl, "_compose_config_from_defaults_list"),
    (defaults_list, "_create_interpolation_map"),
    (omegaconf.base, "parse"),
)


def remember() -> None:
    """Puts the memory into Hydra."""
    memories = (_once_a_file, _once_a_choice, _once_together, _where_asked, cache)
    for (holder, name), once in zip(PATCHED, memories, strict=True):
        setattr(holder, name, once(getattr(holder, name)))


def _once_a_file(load: Callable[..., ConfigResult | None]) -> Callable[..., ConfigResult | None]:
    known: dict[Known, bytes] = {}

    @wraps(load)
    def loaded(self: ConfigRepository, config_path: str) -> ConfigResult | None:
        sources = _known(self)
        if not sources:
            return load(self, config_path)
        key = (*sources, config_path)
        if key not in known:
            known[key] = pickle.dumps(load(self, config_path))
        return pickle.loads(known[key])

    return loaded


def _where_asked(mapped: Callable[..., DictConfig]) -> Callable[..., DictConfig | None]:
    """Only a choice that follows from another one asks which choices were made."""

    @wraps(mapped)
    def made(overrides: Overrides, defaults: list[InputDefault], self_added: bool) -> DictConfig | None:
        follows = any(one.is_interpolation() for one in defaults)
        return mapped(overrides, defaults, self_added) if follows else None

    return made


def _once_a_choice(listed: Callable[..., DefaultsList]) -> Callable[..., DefaultsList]:
    known: dict[Known, DefaultsList] = {}
    groups: dict[Known, bool] = {}

    def chooses(repo: IConfigRepository, sources: Known, one: Override) -> bool:
        key = (*sources, one.key_or_group)
        if key not in groups:
            groups[key] = repo.group_exists(one.key_or_group)
        return groups[key] and not isinstance(one.value(), dict)

    @wraps(listed)
    def chosen(repo: IConfigRepository, overrides_list: list[Override], **asked: Any) -> DefaultsList:
        sources = _known(repo)
        if not sources:
            return listed(repo=repo, overrides_list=overrides_list, **asked)
        single = [one for one in overrides_list if not one.is_sweep_override()]
        choices = [one for one in single if chooses(repo, sources, one)]
        key = (*sources, *asked.items(), *(one.input_line for one in choices))
        if key not in known:
            known[key] = listed(repo=repo, overrides_list=choices, **asked)
        return replace(known[key], config_overrides=[one for one in single if one not in choices])

    return chosen


def _once_together(composed: Callable[..., DictConfig]) -> Callable[..., DictConfig]:
    known: dict[Known, bytes] = {}

    @wraps(composed)
    def together(self: ConfigLoaderImpl, defaults: Sequence[ResultDefault], repo: IConfigRepository) -> DictConfig:
        sources = _known(repo)
        if not sources:
            return composed(self, defaults=defaults, repo=repo)
        key = (*sources, *(repr(one) for one in defaults))
        if key not in known:
            known[key] = pickle.dumps(composed(self, defaults=defaults, repo=repo))
        return pickle.loads(known[key])

    return together


def _known(repo: IConfigRepository) -> Known:
    """Where this repository reads, and what is there; nothing where that is too much to look through."""
    contents = [_content(one) for one in repo.get_sources()]
    return (version.getbase(), *contents, *_names(ConfigStore.instance().repo)) if all(contents) else ()


def _content(source: ConfigSource) -> Known:
    """What tells a source from others: its name, and all that is in a folder that a test may change."""
    if source.scheme() in ("pkg", "structured") or source.full_path() == CONF:
        return (str(source),)
    found = sorted(islice(Path(source.path).rglob("*"), FEW + 1))
    content = [(path, path.read_bytes() if path.suffix == ".yaml" and path.is_file() else b"") for path in found[:FEW]]
    return (str(source), Path(source.path).is_dir(), *content) if len(found) <= FEW else ()


def _names(node: dict[str, Any], above: str = "") -> list[str]:
    """What Python has registered."""
    found = []
    for name, inner in node.items():
        found += _names(inner, f"{above}{name}/") if isinstance(inner, dict) else [above + name]
    return found
