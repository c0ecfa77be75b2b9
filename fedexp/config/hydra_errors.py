"""Hydra's errors in one readable line: what was wrong, what was given, and the nearest names."""

import difflib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import InterpolationKeyError, InterpolationToMissingValueError, OmegaConfBaseException
from yaml import YAMLError

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError, first_line, nearest

COMPOSING = (
    HydraException,
    OmegaConfBaseException,
    YAMLError,
    ValueError,
    RecursionError,
)  # the last: a circle of keys

Known = Callable[[], Sequence[str]]


def explain(error: Exception, overrides: Sequence[str], known: Known) -> ConfigError:
    """The ConfigError for Hydra's `error`; `list_keys` returns every key and group, and is called only if needed."""
    if isinstance(error, ConfigError):
        return error
    if isinstance(error, OverrideParseException):
        return ConfigError(unreadable(error.override))
    if isinstance(error, MissingConfigException):
        return ConfigError(_missing_file(error))
    if isinstance(error, OmegaConfBaseException):
        return ConfigError(_value(error, known))
    for pattern, say in _SAYINGS:
        found = re.search(pattern, str(error))
        if found:
            return ConfigError(say(found[1], overrides, known))
    return ConfigError(_fallback(error, known))


@contextmanager
def searched() -> Iterator[None]:
    """Refuses a missing folder of configs, about which Hydra only warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", r"provider=.*path=.* is not available", UserWarning)
        try:
            yield
        except UserWarning as warning:
            path = str(warning).partition("path=")[2].removesuffix(" is not available.")
            raise ConfigError(
                f"hydra.searchpath must name folders or packages that are there, got {path}; write file:///FOLDER, "
                "pkg://PACKAGE or --config-dir FOLDER"
            ) from warning


def unreadable(override: str) -> str:
    """Says how an override must be written."""
    key, equal, _ = override.partition("=")
    if not equal:
        return f"cannot read {override!r}; write key=value or group=option"
    if not re.fullmatch(r"\+{0,2}~?[\w./@:-]+", key) or key.startswith("-"):
        return f"cannot read {override!r}; {key!r} is no key"
    return f"cannot read {override!r}; close brackets and quotes, and quote a value with special signs: {key}='\"...\"'"


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Names the keys that were probably meant: a sibling, the same last word elsewhere, or anything close."""
    head, _, tail = key.rpartition(".")
    siblings = {name.rpartition(".")[2]: name for name in known if name.rpartition(".")[0] == head}
    same_tail = [name for name in known if name.rpartition(".")[2] == tail]
    tails = {name.rpartition(".")[2]: name for name in known}
    close = (
        [siblings[name] for name in difflib.get_close_matches(tail, siblings, n=2, cutoff=0.6)]
        or difflib.get_close_matches(key, same_tail, n=3, cutoff=0)
        or difflib.get_close_matches(key, () if head and siblings else known, n=2, cutoff=0.7)
        or [tails[name] for name in difflib.get_close_matches(tail, tails, n=2, cutoff=0.75)]
    )
    what = "key" if head else "key or group"
    group, _, own = key.partition(".")
    elsewhere = catalog.options_with(conf_dir(), group, own) if own else []
    if elsewhere and f"{group}.{own}" not in close:
        return f"unknown key {key}; it belongs to {' or '.join(f'{group}={name}' for name in elsewhere)}"
    if close:
        return f"unknown {what} {key}; did you mean {' or '.join(close)}?"
    near = siblings.values() or [name for name in known if "." not in name]
    return f"unknown {what} {key}; known: {', '.join(sorted(near))}"


def _missing_file(error: MissingConfigException) -> str:
    group, _, option = (error.missing_cfg_file or "").rpartition("/")
    if not group:
        return f"unknown root config {option}; it must be a YAML file in the config folder"
    said_in = re.match(r"In '([^']+)'", str(error))
    where = f"{said_in[1]}.yaml: " if said_in and "/" in said_in[1] and not said_in[1].startswith("hydra/") else ""
    hint = f"; {nearest(option, error.options)}" if error.options else ""
    return f"{where}unknown option {group}={option}{hint}"


def _value(error: OmegaConfBaseException, known: Known) -> str:
    key, said = getattr(error, "full_key", None), first_line(error)
    asked = re.search(r"key '([^']+)' not found|value: (\S+)$", said)
    if isinstance(error, InterpolationKeyError) and asked:
        return f"{key} refers to an {unknown_key(asked[1], known())}"
    if isinstance(error, InterpolationToMissingValueError) and asked:
        return f"{key} refers to {asked[2]}, which must be given; set {asked[2]}=..."
    said = re.sub(r"^\w+ raised while resolving interpolation: ", "", said).strip('"')
    return f"{key}: {said}" if key else said


def _written(key: str, overrides: Sequence[str]) -> str:
    """The override that set this key."""
    return next((text for text in overrides if text.lstrip("+~").partition("=")[0] == key), key)


def _no_key(key: str, _: Sequence[str], known: Known) -> str:
    return unknown_key(key.partition("=")[0], known())


def _not_chosen(choice: str, _: Sequence[str], __: Known) -> str:
    return f"{choice} is not chosen, so ~{choice} has nothing to take away"


def _sweep(override: str, _: Sequence[str], __: Known) -> str:
    key, _, value = override.partition("=")
    listed = f", or write a list as {key}=[{value}]" if re.fullmatch(r"[\d.,e+-]+", value) else ""
    return f"{override} gives several values; add -m to run each of them{listed}"


def _exists(key: str, overrides: Sequence[str], _: Known) -> str:
    return f"{key} exists already; write {_written(key, overrides).lstrip('+')} without +"


def _choose(group: str, _: Sequence[str], __: Known) -> str:
    return f"{group} must be chosen; set {group}=... (`fedexp list {group}` shows the options)"


_SAYINGS: list[tuple[str, Callable[[str, Sequence[str], Known], str]]] = [
    (r"Could not override '([^']+)'", _no_key),
    (r"Could not delete from config. '([^']+)' does not exist", _no_key),
    (r"Could not delete '([^']+)'", _not_chosen),
    (r"config group '([^']+)' does not exist", _no_key),
    (r"(?:Ambiguous value for argument|Sweep parameters) '(.+?)'(?: requires|\n|$)", _sweep),
    (r"An item is already at '([^']+)'", _exists),
    (r"^(\S+) appears more than once in the final defaults list", _exists),
    (r"Multiple values for (\S+?)\.", _exists),
    (r"force-add of config groups is not supported: '\+\+([^=]+)=", _exists),
    (r"You must specify '([^']+)'", _choose),
]


def _fallback(error: Exception, known: Known) -> str:
    if isinstance(error.__cause__, OmegaConfBaseException):
        return _value(error.__cause__, known)
    return " ".join(str(error).partition("Config search path:")[0].split())
