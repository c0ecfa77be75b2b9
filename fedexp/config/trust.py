"""Decides whose modules a saved config may import, and to which addresses its tracker may send.

Who composes a run decides about its parts. A folder decides nothing: what it names is imported if it is fedexp's, if an
installed package offers it (the entry points `fedexp.parts` and `fedexp.groups`), if the user ran it here before from
the same place (each project may have a package `mine`), or if the user names it now (`--trust-modules`). To an address
that a folder names nothing is sent, and no file is written there, unless the user sent something there before or names
it now. `saved_config.read_config` asks this, and `files/untrusted_json.py` for size and depth, before a config is
believed.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fedexp.config import roles
from fedexp.core.errors import ConfigError
from fedexp.core.imports.importing import FACTORY, find_package
from fedexp.files.atomic import display_path, shell_path, write_atomically
from fedexp.files.locks import file_lock
from fedexp.files.url_credentials import is_in_environment

OURS, ENTRY_POINTS, NAME = "fedexp", "fedexp.parts", "own_parts.json"
ADDRESSES = "tracker addresses"  # no name of a package
TrustedLocations = dict[str, list[str]]  # places by the names of packages, and of config folders by themselves
PATIENCE_S = 5.0  # for another process that notes something


@dataclass(frozen=True)
class Trust:
    """What the user named: modules, a folder of options, addresses; `composed` where all words are the user's own."""

    modules: tuple[str, ...] = ()
    config_dir: Path | None = None
    addresses: tuple[str, ...] = ()
    composed: bool = False

    def refuse_untrusted(self, config: Any, folder: Path) -> None:
        """Refuses a config of a folder that names somebody else's module, or any factory; imports nothing.

        Raises:
            ConfigError: says which, and how it is allowed.
        """
        if self.composed:
            return
        for target in sorted(set(foreign_targets(config))):
            package = _package(target)
            if not (self.is_named(target) or _is_offered(package) or _is_same_location(package)):
                raise _untrusted_error(folder, f"{target}, which is not part of fedexp and was never run here", package)
        for factory in sorted(set(factories(config))):
            if not (self.is_named(factory) or _is_same_location(factory)):
                raise _untrusted_error(folder, f"{factory}, which was never run here", _package(factory))

    def options(self, saved_folder: Path | None, folder: Path) -> Path | None:
        """The folder of options to use where that of a sweep or search names one; raises like `refuse_untrusted`."""
        if self.config_dir is not None or saved_folder is None or self.composed:
            return self.config_dir or saved_folder
        path = "" if "\0" in str(saved_folder) else str(saved_folder.resolve())
        if path not in _load_trusted():
            raise ConfigError(
                f"{display_path(folder)} takes options from {path or 'a path with a NUL'}, which was never used here; "
                f"if they are yours, add --config-dir {shell_path(saved_folder)}"
            )
        return saved_folder

    def sends_to(self, address: str) -> bool:
        """Whether a run may send something to this address."""
        return self.composed or address in self.addresses or was_address_used(address)

    def is_named(self, target: str) -> bool:
        """Whether the user named this module, or one that holds it."""
        dotted = target.replace(":", ".")
        return any(f"{dotted}.".startswith(f"{module}.") for module in self.modules)


def _untrusted_error(folder: Path, description: str, package: str) -> ConfigError:
    if package in sys.stdlib_module_names:
        advice = f"{package} is a module of Python itself, which no experiment needs: do not go on with this folder"
    else:
        advice = f"if you know where it comes from, add --trust-modules {package}"
    return ConfigError(f"{display_path(folder)} names {description}; {advice}")


NO_TRUST = Trust()


def remember_modules(config: Any = None, config_dir: Path | None = None) -> None:
    """Records for this user, in no run folder, which modules and options were run; nothing without a home."""
    used = (*map(_package, foreign_targets(config)), *factories(config))  # a factory by its own name
    locations = {name: where for name in used if (where := import_locations(_package(name)))}
    if config_dir is not None:
        locations[str(config_dir.resolve())] = [str(config_dir.resolve())]
    _add_locations(locations)


def remember_address(address: str) -> None:
    """Records for this user that something was sent to this address."""
    _add_locations({ADDRESSES: [address]})


def was_address_used(address: str) -> bool:
    """Whether something was sent to this address before, or the environment names it."""
    return is_in_environment(address) or address in _load_trusted().get(ADDRESSES, [])


def _add_locations(locations: TrustedLocations) -> None:
    trusted_locations = _load_trusted()
    if all(_is_trusted_at(trusted_locations, package, where) for package, where in locations.items()):
        return
    with suppress(OSError):
        _trust_file().parent.mkdir(parents=True, exist_ok=True)
        with file_lock(_trust_file().with_name(f".{NAME}.lock"), PATIENCE_S):
            merged_locations: TrustedLocations = {}
            for name, paths in _load_trusted().items():
                merged_locations[name] = [path for path in paths if name == ADDRESSES or Path(path).exists()]
            for name, where in locations.items():
                merged_locations[name] = list(dict.fromkeys([*merged_locations.get(name, []), *where]))
            merged_locations = {name: paths for name, paths in merged_locations.items() if paths}
            write_atomically(_trust_file(), json.dumps(merged_locations, indent=2).encode())


def _is_trusted_at(trusted_locations: TrustedLocations, package: str, where: list[str]) -> bool:
    """Whether a package is recorded at all of these locations."""
    return set(where) <= set(trusted_locations.get(package, []))


def foreign_targets(node: Any) -> Iterator[str]:
    """Every `_target_` of a nested config that is not fedexp's."""
    for inner in _nodes(node):
        target = inner.get("_target_")
        if isinstance(target, str) and _package(target) != OURS:
            yield target


def factories(node: Any) -> Iterator[str]:
    """Every function that a nested config names as `factory: module:name`, or in a list of `metrics`.

    It is called, and may do anything, even if it is fedexp's or a trusted library's. So each is known by its own name,
    not by its package.
    """
    for inner in _nodes(node):
        metrics = inner.get("metrics")
        for name in (inner.get("factory"), *(metrics if isinstance(metrics, list | tuple) else ())):
            if isinstance(name, str) and FACTORY.fullmatch(name):
                yield name


def named_modules(config: Any) -> Iterator[str]:
    """The modules of all parts and functions in a nested config that are not fedexp's, by their dotted names."""
    for target in (*foreign_targets(config), *factories(config)):
        if _package(target) != OURS:
            yield target.replace(":", ".").rpartition(".")[0]


def _nodes(node: Any) -> Iterator[Mapping]:
    """Every mapping in a nested config."""
    children = node.values() if isinstance(node, Mapping) else node if isinstance(node, list | tuple) else ()
    for child in children:
        yield from _nodes(child)
    if isinstance(node, Mapping):
        yield node


def import_locations(package: str) -> list[str]:
    """The paths a package would be imported from, found without importing it; several for a namespace package."""
    spec = find_package(package)
    if spec is None:
        return []
    return [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())


def _package(target: str) -> str:
    return target.replace(":", ".").partition(".")[0]


def _is_offered(package: str) -> bool:
    offers = (entry_point for group in (ENTRY_POINTS, roles.ENTRY_POINTS) for entry_point in entry_points(group=group))
    return any(_package(entry_point.module) == package for entry_point in offers)


def _is_same_location(name: str) -> bool:
    """Whether a package or factory would be imported only from where it was when it was run here before."""
    where = import_locations(_package(name))
    return bool(where) and _is_trusted_at(_load_trusted(), name, where)


def _trust_file() -> Path:
    from fedexp.data.store import cache_dir  # it brings numpy, which completing a word need not wait for

    return cache_dir() / NAME


def _load_trusted() -> TrustedLocations:
    with suppress(OSError, ValueError, TypeError):
        content = json.loads(_trust_file().read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return {str(name): list(map(str, paths)) for name, paths in content.items() if isinstance(paths, list)}
    return {}
