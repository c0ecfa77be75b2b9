"""Hydra's errors in one readable line: what was wrong, what was given, and the nearest names.

Keys that Hydra lets pass are checked where the part is built: `core/part.py`.
"""

import difflib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, ListConfig
from omegaconf.errors import InterpolationKeyError, InterpolationToMissingValueError, OmegaConfBaseException
from yaml import YAMLError

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.config.override_text import key_of
from fedexp.config.vocabulary import synonyms
from fedexp.config.vocabulary.hints import groups_with_option, hint_anywhere, option_hint
from fedexp.core.errors import ConfigError, first_line, normalize_word

COMPOSE_ERRORS = (
    HydraException,
    OmegaConfBaseException,
    YAMLError,
    ValueError,
    RecursionError,
)  # the last: a circle of keys
LOGGING_ERRORS = (AssertionError, AttributeError, ImportError, KeyError, OSError, TypeError, ValueError)

_NUMBER = r"[-+.\deE]+"
_SEARCH_SPACE = rf"(log|log_?uniform|uniform|float)\((interval\()?(?P<low>{_NUMBER}),(?P<high>{_NUMBER})\)+"
_NULL_CHOICE = r"(?i)choice\((?P<values>([^()\[\]{}]*,)?\s*null\s*(,[^()]*)?)\)"
ListKeys = Callable[[], Sequence[str]]


def explain(error: Exception, overrides: Sequence[str], list_keys: ListKeys) -> ConfigError:
    """The ConfigError for Hydra's `error`; `list_keys` returns every key and group, and is called only if needed."""
    if isinstance(error, OverrideParseException):
        return ConfigError(explain_unreadable(error.override))
    if isinstance(error, MissingConfigException):
        return ConfigError(_missing_file(error))
    if isinstance(error, OmegaConfBaseException):
        return ConfigError(_explain_value(error, list_keys))
    for pattern, explain_match in _EXPLANATIONS:
        match = re.search(pattern, str(error))
        if match:
            return ConfigError(explain_match(match[1], overrides, list_keys))
    return ConfigError(_fallback(error, list_keys))


@contextmanager
def refuse_missing_folders() -> Iterator[None]:
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


def refuse_invalid_verbosity(hydra: DictConfig) -> None:
    """Refuses what `hydra.verbose` cannot be; Hydra would end with a bare assertion."""
    verbose = hydra.verbose
    names = list(verbose) if isinstance(verbose, ListConfig) else [verbose]
    if not (isinstance(verbose, bool) or (names and all(isinstance(name, str) for name in names))):
        raise ConfigError(
            f"hydra.verbose must be true, false, the name of a logger or a list of such names, got {verbose}"
        )


@contextmanager
def explain_logging_errors() -> Iterator[None]:
    """Turns an error in setting up logging into a ConfigError of one line; other errors pass."""
    try:
        yield
    except LOGGING_ERRORS as error:
        if all(frame.f_code.co_name != "configure_log" for frame, _ in walk_tb(error.__traceback__)):
            raise
        why = first_line(error.__cause__ or error)
        raise ConfigError(
            f"logging cannot be set up as hydra.hydra_logging and hydra.job_logging say: {why}; leave them as they are"
        ) from error


def explain_unreadable(override: str) -> str:
    """Says how an override must be written."""
    key, equal, _ = override.partition("=")
    words = re.split(r"[\s,]+", override)
    if len(words) > 1 and all(re.fullmatch(r"\+*[\w./@]+=[^\s=]+", word) for word in words):
        return f"cannot read {override!r}; write each apart: {' '.join(words)}"
    if not equal:
        if isinstance(catalog.root(conf_dir()).get(override), str | int | float):
            return f"cannot read {override!r}; write {override}=VALUE"
        group = groups_with_option(override)
        return f"cannot read {override!r}; {f'it belongs to {group}' if group else 'write key=value or group=option'}"
    if not re.fullmatch(r"\+{0,2}~?[\w./@:-]+", key) or key.startswith("-"):
        return f"cannot read {override!r}; {key!r} is no key"
    if bounds := re.fullmatch(_SEARCH_SPACE, override.partition("=")[2].replace(" ", "")):
        interval = f"interval({bounds['low']},{bounds['high']})"
        scales = f"'{key}=tag(log,{interval})' on a logarithmic scale, or '{key}={interval}'"
        return f"cannot read {override!r}; fedexp search takes {scales}"
    if listed := re.search(_NULL_CHOICE, override):
        values = listed["values"].replace(", ", ",")
        hint = f"but a list does: {key}={values} (in a search each of its values is a method)"
        return f"cannot read {override!r}; choice takes no null, {hint}"
    return f"cannot read {override!r}; close brackets and quotes, and quote a value with special signs: {key}='\"...\"'"


def explain_unknown_key(key: str, key_names: Sequence[str], value: str = "") -> str:
    """Names the keys that were probably meant: a sibling, the same last word elsewhere, or anything close.

    `value` is what was typed for the key.
    """
    head, _, tail = key.rpartition(".")
    siblings = {name.rpartition(".")[2]: name for name in key_names if name.rpartition(".")[0] == head}
    same_tail = [name for name in key_names if name.rpartition(".")[2] == tail]
    tails = {name.rpartition(".")[2]: name for name in key_names if not name.startswith("hydra.") or head == "hydra"}
    close = (
        [siblings[name] for name in difflib.get_close_matches(tail, siblings, n=2, cutoff=0.6)]
        or [siblings[name] for name in siblings if len(tail) > 2 and name.startswith(tail)]
        or difflib.get_close_matches(key, same_tail, n=3, cutoff=0)
        or difflib.get_close_matches(
            key, () if head and (siblings or catalog.options(conf_dir(), head)) else key_names, n=2, cutoff=0.7
        )
        or [tails[name] for name in difflib.get_close_matches(tail, tails, n=2, cutoff=0.75)]
    )
    noun = "key" if head else "key or group"
    if synonym := synonyms.key_synonym(key, value):
        chosen = hint_anywhere(value) if synonym.endswith("=...") else ""
        return f"unknown {noun} {key}; {chosen or f'write {synonym}'}"
    if same_letters := [name for name in key_names if "." in name and _letters(name) == _letters(key)]:
        return f"unknown {noun} {key}; write {same_letters[0]}={value or '...'}"
    if key not in close and (elsewhere := _options_with(key)):
        here = f"; the option chosen here has {', '.join(siblings)}" if siblings else ""
        return f"unknown key {key}; it belongs to {elsewhere}{here}"
    if close:
        return f"unknown {noun} {key}; did you mean {' or '.join(close)}?"
    groups = [name for name in key_names if "." not in name]
    for group in difflib.get_close_matches(head, groups, n=1, cutoff=0.75):
        group_keys = {name.removeprefix(f"{group}."): name for name in catalog.group_keys(conf_dir(), group)}
        for similar in difflib.get_close_matches(tail, group_keys, n=1, cutoff=0.7):
            return f"unknown key {key}; did you mean {group_keys[similar]} of {_options_with(group_keys[similar])}?"
        siblings = siblings or group_keys
    near = siblings.values() or groups
    return f"unknown {noun} {key}; known: {', '.join(sorted(near))}"


def _options_with(key: str) -> str:
    """The options of a key's group that have it, as they are typed."""
    group, _, subkey = key.partition(".")
    return " or ".join(f"{group}={name}" for name in catalog.options_with(conf_dir(), group, subkey) if subkey)


def _missing_file(error: MissingConfigException) -> str:
    group, _, option = (error.missing_cfg_file or "").rpartition("/")
    if not group:
        return f"unknown root config {option}; it must be a YAML file in the config folder"
    said_in = re.match(r"In '([^']+)'", str(error))
    where = f"{said_in[1]}.yaml: " if said_in and "/" in said_in[1] and not said_in[1].startswith("hydra/") else ""
    working_folder = Path("conf", group, f"{option}.yaml")
    if working_folder.is_file() and not synonyms.option_synonym(group, option):
        hint = f"; to use {working_folder}, add --config-dir conf"
    else:
        hint = option_hint(group, option, error.options or ())
    return f"{where}unknown option {group}={option}{hint}"


def _letters(key: str) -> str:
    """A key as people remember it, who write local_lr for local.lr."""
    return normalize_word(key.replace(".", ""))


def _explain_value(error: OmegaConfBaseException, list_keys: ListKeys) -> str:
    key, message = getattr(error, "full_key", None), first_line(error)
    match = re.search(r"key '([^']+)' not found|value: (\S+)$", message)
    if isinstance(error, InterpolationKeyError) and match:
        return f"{key} refers to an {explain_unknown_key(match[1], list_keys())}"
    if isinstance(error, InterpolationToMissingValueError) and match:
        return f"{key} refers to {match[2]}, which must be given; set {match[2]}=..."
    message = re.sub(r"^\w+ raised while resolving interpolation: ", "", message).strip('"')
    return f"{key}: {message}" if key else message


def _no_key(text: str, overrides: Sequence[str], list_keys: ListKeys) -> str:
    key = text.partition("=")[0]
    return explain_unknown_key(key, list_keys(), _override_of(key, overrides).partition("=")[2])


def _not_chosen(choice: str, _: Sequence[str], __: ListKeys) -> str:
    return f"{choice} is not chosen, so ~{choice} has nothing to take away"


def _sweep(override: str, _: Sequence[str], __: ListKeys) -> str:
    key, _, value = override.partition("=")
    listed = f", or write a list as {key}=[{value}]" if re.fullmatch(r"[\d.,e+-]+", value) else ""
    return f"{override} gives several values; add -m to run each of them{listed}"


def _exists(key: str, overrides: Sequence[str], _: ListKeys) -> str:
    return f"{key} exists already; write {_override_of(key, overrides).lstrip('+')} without +"


def _override_of(key: str, overrides: Sequence[str]) -> str:
    """The word that sets a key."""
    return next((text for text in overrides if key_of(text) == key), key)


def _choose(group: str, _: Sequence[str], __: ListKeys) -> str:
    return f"{group} must be chosen; set {group}=... (`fedexp list {group}` shows the options)"


_EXPLANATIONS: list[tuple[str, Callable[[str, Sequence[str], ListKeys], str]]] = [
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


def _fallback(error: Exception, list_keys: ListKeys) -> str:
    if isinstance(error.__cause__, OmegaConfBaseException):
        return _explain_value(error.__cause__, list_keys)
    return " ".join(str(error).partition("Config search path:")[0].split())
