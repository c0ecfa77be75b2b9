"""Decides whose modules a saved config may import, and to which addresses its tracker may send.

Who composes a run decides about its parts. A folder decides nothing: what it names is imported if it is fedexp's, if an
installed package offers it (the entry points `fedexp.parts` and `fedexp.groups`), if the user ran it here before from
the same place (each project may have a package `mine`), or if the user names it now (`--trust-modules`). To an address
that a folder names nothing is sent, and no file is written there, unless the user sent something there before or names
it now.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fedexp.config import roles
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown, write_atomically
from fedexp.core.importing import FACTORY
from fedexp.core.locks import locked
from fedexp.core.moved import today
from fedexp.core.passwords import is_held

OURS, ENTRY_POINTS, NAME = "fedexp", "fedexp.parts", "own_parts.json"
ADDRESSES = "tracker addresses"  # no name of a package
Known = dict[str, list[str]]  # places by the names of packages, and of config folders by themselves
PATIENCE_S = 5.0  # for another process that notes something


@dataclass(frozen=True)
class Trust:
    """What the user named: modules, a folder of options, addresses; `composed` where all words are the user's own."""

    modules: tuple[str, ...] = ()
    config_dir: Path | None = None
    addresses: tuple[str, ...] = ()
    composed: bool = False

    def demand(self, config: Any, folder: Path) -> None:
        """Refuses a config of a folder that names somebody else's module, or any factory; imports nothing.

        Raises:
            ConfigError: says which, and how it is allowed.
        """
        if self.composed:
            return
        for target in sorted(set(foreign(config))):
            package = _package(target)
            if not (self._named(target) or _offered(package) or _same(package)):
                raise _stranger(folder, f"{target}, which is not part of fedexp and was never run here", package)
        for factory in sorted(set(factories(config))):
            if not (self._named(factory) or _same(factory)):
                raise _stranger(folder, f"{factory}, which was never run here", _package(factory))

    def options(self, noted: Path | None, folder: Path) -> Path | None:
        """The folder of options to use where that of a sweep or search names one; raises like `demand`."""
        if self.config_dir is not None or noted is None or self.composed:
            return self.config_dir or noted
        path = str(noted.resolve())
        if path not in _known():
            raise ConfigError(
                f"{shown(folder)} takes options from {path}, which was never used here; "
                f"if they are yours, add --config-dir {shown(noted)}"
            )
        return noted

    def sends_to(self, address: str) -> bool:
        """Whether a run may send something to this address."""
        return self.composed or address in self.addresses or was_used(address)

    def _named(self, target: str) -> bool:
        dotted = target.replace(":", ".")
        return any(f"{dotted}.".startswith(f"{module}.") for module in self.modules)


def _stranger(folder: Path, named: str, package: str) -> ConfigError:
    return ConfigError(f"{shown(folder)} names {named}; if you know where it comes from, add --trust-modules {package}")


NOBODY = Trust()


def remember(config: Any = None, config_dir: Path | None = None) -> None:
    """Records for this user, in no run folder, which modules and options were run; nothing without a home."""
    used = (*map(_package, foreign(config)), *factories(config))
    found = {name: where for name in used if (where := places(_package(name)))}
    if config_dir is not None:
        found[str(config_dir.resolve())] = [str(config_dir.resolve())]
    _note_down(found)


def remember_address(address: str) -> None:
    """Records for this user that something was sent to this address."""
    _note_down({ADDRESSES: [address]})


def was_used(address: str) -> bool:
    """Whether something was sent to this address before, or the environment names it."""
    return is_held(address) or address in _known().get(ADDRESSES, [])


def _note_down(found: Known) -> None:
    noted = _known()
    if all(_within(noted, package, where) for package, where in found.items()):
        return
    with suppress(OSError):
        _note().parent.mkdir(parents=True, exist_ok=True)
        with locked(_note().with_name(f".{NAME}.lock"), PATIENCE_S):
            known = {name: kept for name, noted in _known().items() if (kept := _still_there(name, noted))}
            for name, where in found.items():
                known[name] = list(dict.fromkeys([*known.get(name, []), *where]))
            write_atomically(_note(), json.dumps(known, indent=2).encode())


def _still_there(name: str, noted: list[str]) -> list[str]:
    return noted if name == ADDRESSES else [where for where in noted if Path(where).exists()]


def _within(known: Known, package: str, where: list[str]) -> bool:
    """Whether a package is recorded at all of these locations."""
    return set(where) <= set(known.get(package, []))


def foreign(node: Any) -> Iterator[str]:
    """Every `_target_` of a nested config that is not fedexp's."""
    for inner in _nodes(node):
        target = inner.get("_target_")
        if isinstance(target, str) and _package(today(target)) != OURS:
            yield target


def factories(node: Any) -> Iterator[str]:
    """Every function that a nested config names as `factory: module:name`.

    It is called, and may do anything, even if it is fedexp's or a trusted library's. So each is known by its own name,
    not by its package.
    """
    for inner in _nodes(node):
        factory = inner.get("factory")
        if isinstance(factory, str) and FACTORY.fullmatch(factory):
            yield factory


def _nodes(node: Any) -> Iterator[Mapping]:
    """Every mapping in a nested config."""
    children = node.values() if isinstance(node, Mapping) else node if isinstance(node, list | tuple) else ()
    for child in children:
        yield from _nodes(child)
    if isinstance(node, Mapping):
        yield node


def places(package: str) -> list[str]:
    """The paths a package would be imported from, found without importing it; several for a namespace package."""
    with suppress(ImportError, ValueError):
        spec = find_spec(package)
        if spec is not None:
            return [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    return []


def _package(target: str) -> str:
    return target.replace(":", ".").partition(".")[0]


def _offered(package: str) -> bool:
    offers = (one for group in (ENTRY_POINTS, roles.ENTRY_POINTS) for one in entry_points(group=group))
    return any(_package(one.module) == package for one in offers)


def _same(name: str) -> bool:
    """Whether a package or factory would be imported only from where it was when it was run here before."""
    where = places(_package(name))
    return bool(where) and _within(_known(), name, where)


def _note() -> Path:
    from fedexp.data.store import cache_dir  # it brings numpy, which completing a word need not wait for

    return cache_dir() / NAME


def _known() -> Known:
    with suppress(OSError, ValueError, TypeError):
        found = json.loads(_note().read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return {str(name): list(map(str, places)) for name, places in found.items() if isinstance(places, list)}
    return {}
