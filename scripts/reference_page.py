"""The reference of `fedexp.parts`: every name that a part may import, with what its docstring says."""

import inspect
import re
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cached_property
from textwrap import fill
from typing import Any

from fedexp import parts

SIMPLE = (str, int, float, tuple, frozenset, set, dict)


def lines() -> list[str]:
    """A chapter for each contract and class, then the functions and the constants."""
    members = {name: getattr(parts, name) for name in parts.__all__}
    classes = {name: member for name, member in members.items() if inspect.isclass(member)}
    functions = {name: member for name, member in members.items() if inspect.isfunction(member)}
    contracts = {name: kind for name, kind in classes.items() if issubclass(kind, parts.Part)}
    chapters = ["## Contracts", "", *(line for name in contracts for line in describe_class(name, contracts[name]))]
    others = {name: kind for name, kind in classes.items() if name not in contracts}
    chapters += ["## Values", "", *(line for name in others for line in describe_class(name, others[name]))]
    chapters += ["## Functions", "", *(line for name in functions for line in describe_function(name, functions[name]))]
    constants = {name: member for name, member in members.items() if isinstance(member, SIMPLE)}
    types = {name: member for name, member in members.items() if name not in {*classes, *functions, *constants}}
    chapters += ["## Types", "", *(_item(f"`{name}` is `{_type_text(member)}`") for name, member in types.items()), ""]
    chapters += ["## Constants", "", *(_item(f"`{name}` is `{value!r}`") for name, value in constants.items()), ""]
    return chapters


def describe_class(name: str, kind: type) -> list[str]:
    """A class with its docstring, then its own public methods and properties."""
    if not kind.__module__.startswith("fedexp."):
        return [f"### {name}", "", f"PyTorch's `{kind.__name__}`.", ""]
    text = [f"### {name}", "", *_paragraphs(kind), ""]
    if is_dataclass(kind) and not issubclass(kind, parts.Part):
        text += [*_further_paragraphs(kind), _fill(f"`{name}({', '.join(map(_field, fields(kind)))})`"), ""]
    for member, value in vars(kind).items():
        if member.startswith("_") or not getattr(value, "__doc__", None):
            continue
        if inspect.isfunction(value):
            text += [_item(f"`{member}{_signature(value)}`: {_summary(value)}")]
        elif isinstance(value, property | cached_property | classmethod | staticmethod):
            text += [_item(f"`{member}`: {_summary(value)}")]
    return [*text, ""] if text[-1] else text


def describe_function(name: str, function: Any) -> list[str]:
    """A function with its signature and its docstring."""
    return [
        f"### {name}",
        "",
        f"`{name}{_signature(function)}`",
        "",
        *_paragraphs(function),
        "",
        *_further_paragraphs(function),
    ]


def _signature(function: Any) -> str:
    parameters = {name: entry for name, entry in inspect.signature(function).parameters.items() if name != "self"}
    names = [f"*{name}" if entry.kind is entry.VAR_POSITIONAL else name for name, entry in parameters.items()]
    return f"({', '.join(names)})"


def _type_text(member: Any) -> str:
    return re.sub(r"(?<![\w.])(?:\w+\.)+(?=\w)", "", member.__name__ if inspect.isclass(member) else str(member))


def _field(entry: Field[Any]) -> str:
    is_needed = entry.default is MISSING and entry.default_factory is MISSING
    return entry.name if is_needed or entry.default is MISSING else f"{entry.name}={entry.default!r}"


def _item(text: str) -> str:
    return fill(text, 118, initial_indent="* ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _summary(member: Any) -> str:
    return " ".join((inspect.getdoc(member) or "").split("\n\n")[0].split())


def _paragraphs(member: Any) -> list[str]:
    return [_fill(_summary(member))] if member.__doc__ else []


def _further_paragraphs(member: Any) -> list[str]:
    """The paragraphs of a docstring behind its first, each with an empty line."""
    further = (inspect.getdoc(member) or "").split("\n\n")[1:]
    return [line for paragraph in further for line in (_fill(" ".join(paragraph.split())), "")]


def _fill(text: str) -> str:
    return fill(text, 118, break_long_words=False, break_on_hyphens=False)
