"""Checked parts: dataclass fields that know their type and range, and the builder that names the key at fault.

A part is a frozen dataclass whose constructor only remembers and checks. `build` turns a composed config node into a
part through its `_target_`; every complaint names the config key, what it must be, what came, and the nearest names.
"""

import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Union, dataclass_transform, get_args, get_origin, get_type_hints

from fedexp.core.errors import ConfigError, did_you_mean, missing_package_hint
from fedexp.core.imports.importing import import_object

MAX_INTEGER = 10**9  # bound of whole numbers that have none of their own; no count of an experiment is larger


@dataclass(frozen=True)
class Range:
    """Bounds of a number: closed unless said otherwise; infinity is allowed only with `infinite`."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    infinite: bool = False

    def __contains__(self, value: float) -> bool:
        if abs(value) == math.inf and not self.infinite:
            return False
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def __str__(self) -> str:
        if -self.low == self.high == math.inf:
            return ""
        if self.high > MAX_INTEGER:  # a bound that only those who exceed it need to know
            return f"{'>' if self.low_open else '>='} {self.low:g}"
        opening, closing = "(" if self.low_open else "[", ")" if self.high_open else "]"
        return f"in {opening}{self.low:g}, {self.high:g}{closing}"


Positive = Range(0, low_open=True)
PositiveOrInfinite = Range(0, low_open=True, infinite=True)
Fraction = Range(0, 1)

_NAMES = {int: "an integer", float: "a number", str: "a text", bool: "true or false"}
_NAMES |= {Path: "a path", type(None): "null"}


def describe(kind: Any) -> str:
    """Says in words what a field's annotation allows."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return " ".join([describe(args[0]), *filter(None, map(str, args[1:]))])
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin in (Union, types.UnionType):
        *most, last = map(describe, args)
        return ", ".join(most) + f" or {last}"
    if origin is tuple:
        return f"a list (each {describe(args[0])})"
    name = getattr(kind, "__name__", str(kind))
    return _NAMES.get(kind, f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}")


def convert(kind: Any, value: Any) -> Any:
    """The value in the type that the annotation wants; raises TypeError where it does not fit."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _check_bounds(args[1:], convert(args[0], value))
    if origin in (Union, types.UnionType):
        return _first_that_fits(args, value)
    if origin is Literal:
        if value in args and type(value) in {type(arg) for arg in args}:
            return value
        raise TypeError
    if origin is tuple:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise TypeError
        return tuple(convert(args[0], entry) for entry in value)
    return _convert_scalar(kind, value)


def _check_bounds(bounds: Sequence[Range], value: Any) -> Any:
    is_endless = type(value) is int and value > MAX_INTEGER and all(bound.high == math.inf for bound in bounds)
    if is_endless or (isinstance(value, int | float) and any(value not in bound for bound in bounds)):
        raise TypeError
    return value


def _first_that_fits(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        with suppress(TypeError):
            return convert(kind, value)
    raise TypeError


def _convert_scalar(kind: Any, value: Any) -> Any:
    if kind is Any or (kind is type(None) and value is None):
        return value
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    if kind is float:
        return _convert_float(value)
    if isinstance(kind, type) and isinstance(value, kind) and (kind is not int or type(value) is int):
        return value
    raise TypeError


def _convert_float(value: Any) -> float:
    if type(value) not in (int, float) or value != value:  # NaN alone differs from itself
        raise TypeError
    try:
        return float(value)
    except OverflowError:
        raise TypeError from None


def _list_hint(kind: Any, value: Any) -> str:
    """How a value is written where nothing but a list of such values is wanted; else empty."""
    with suppress(TypeError):
        if describe(kind).startswith("a list") and convert(kind, [value]):
            return f"write [{value}]"
    return ""


def exceeded_bound(kind: Any, value: Any) -> str:
    """The upper bound of every number in words, if this value exceeds it; else an empty text."""
    bounds = [rule.high for rule in _ranges(kind)]
    most = next((int(high) for high in bounds if MAX_INTEGER <= high != math.inf), MAX_INTEGER)
    if type(value) is int and value > most and all(high >= MAX_INTEGER for high in bounds):
        return f" and at most {most:,}"
    return " and finite" if type(value) is float and math.isinf(value) else ""


def _ranges(kind: Any) -> Iterator[Range]:
    """Every range in an annotation, also those inside a union."""
    for argument in get_args(kind):
        yield from (argument,) if isinstance(argument, Range) else _ranges(argument)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Part:
    """Base of everything that is configured: its subclasses are frozen, keyword-only dataclasses by themselves."""

    # whether methods that it adds to its contract's, and that see uploads, may compare their rows
    needs_all_rows = True

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for entry in fields(self):  # type: ignore[arg-type]
            value = getattr(self, entry.name)
            try:
                object.__setattr__(self, entry.name, convert(hints[entry.name], value))
            except TypeError:
                wanted = describe(hints[entry.name]) + exceeded_bound(hints[entry.name], value)
                hint = entry.metadata.get("hint") or _list_hint(hints[entry.name], value)
                message = f"{type(self).__name__}.{entry.name} must be {wanted}, got {value!r}"
                raise ConfigError(f"{message}; {hint}" if hint else message) from None
        self.check()

    @classmethod
    def missing_methods(cls) -> list[str]:
        """The abstract methods that a class must still define before it can be used."""
        return [name for name in dir(cls) if getattr(getattr(cls, name), "__isabstractmethod__", False)]

    @classmethod
    def config_keys(cls) -> list[str]:
        """The config keys of its values."""
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]

    @classmethod
    def by_field(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Maps the values of its config keys to the values of its fields."""
        return values

    def check(self) -> None:
        """Refuses combinations of this part's own fields that cannot work, by ConfigError."""


def option(part: Part) -> str:
    """The name that chose a part on the command line: its own, or that of its module, named like its YAML."""
    return getattr(part, "option", None) or type(part).__module__.rpartition(".")[2]


def describe_choice(role: str, part: Part) -> str:
    """A part as chosen on the command line: `model=mlp`; a user's own by its class, `model=mine.net.Net`."""
    kind = type(part)
    is_user_class = not kind.__module__.startswith("fedexp.")
    return f"{role}={kind.__module__}.{kind.__qualname__}" if is_user_class else f"{role}={option(part)}"


def find_class(target: Any, key: str) -> type[Part]:
    """The part class that `_target_` names, ours or a user's; everything else is refused."""
    where = f"{key}._target_" if key else "_target_"
    if not (isinstance(target, str) and re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", target)):
        raise ConfigError(f"{where} must name a part as module.Class, got {target!r}")
    part_class = import_object(target, where)
    if not (isinstance(part_class, type) and issubclass(part_class, Part) and part_class is not Part):
        raise ConfigError(f"{where} must name a part, but {target} is not one")
    if methods := part_class.missing_methods():
        raise ConfigError(f"{where}={target} must define {' and '.join(methods)}")
    return part_class


def build(node: Mapping[str, Any], key: str = "") -> Any:
    """Builds the part that a plain (resolved) config node describes, nested parts first.

    Raises:
        ConfigError: unknown or missing key, wrong value; names the full key.
    """
    target = find_class(node.get("_target_"), key)
    key_names = target.config_keys()
    values = {name: value for name, value in node.items() if name != "_target_"}
    dot = f"{key}." if key else ""
    for name, value in values.items():
        if name not in key_names:
            raise ConfigError(
                f"unknown key {dot}{name}; {missing_package_hint(value) or did_you_mean(name, key_names)}"
            )
        if value == "???":
            raise ConfigError(f"{dot}{name} must be given; set {dot}{name}=...")
        if isinstance(value, Mapping) and "_target_" in value:
            values[name] = build(value, f"{dot}{name}")
    for entry in fields(target):  # type: ignore[arg-type]
        has_default = entry.default is not MISSING or entry.default_factory is not MISSING
        if entry.name not in values and not has_default:
            raise ConfigError(f"{dot}{entry.name} must be given; set {dot}{entry.name}=...")
    return construct(target, target.by_field(values), dot)


def construct(kind: type[Part], values: Mapping[str, Any], dot: str) -> Part:
    """Makes the part with these values; `dot` precedes the names of its keys in messages."""
    try:
        return kind(**values)
    except ConfigError as error:
        raise ConfigError(str(error).replace(f"{kind.__name__}.", dot, 1)) from None
    except (Exception, SystemExit) as error:  # a user's own check, or an annotation that says nothing
        raise ConfigError(
            f"{dot}_target_={kind.__module__}.{kind.__qualname__} cannot be made: {type(error).__name__}: {error}"
        ) from error
