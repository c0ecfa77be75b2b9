"""Reads `encoder.json` of an exported folder; what it says is checked before it is believed."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from fedexp.core.errors import ConfigError
from fedexp.core.fields import describe_misfit
from fedexp.data.tables.encoding import Column
from fedexp.data.tokens import TextFormat
from fedexp.export.encoder import NAME, Encoder
from fedexp.files.atomic import display_path
from fedexp.files.table_names import fault_in_column_names
from fedexp.files.untrusted_json import read_json
from fedexp.parts.dataset.normalising import factor_and_offset

_COLUMNS = ("columns", "target_columns")


def read_encoder(folder: Path) -> Encoder:
    """The encoder that is saved in an exported folder.

    Raises:
        ConfigError: there is none, or it is not one.
    """
    path = folder / NAME
    content = read_json(path)
    if content is None:
        raise ConfigError(f"{display_path(folder)} has no {NAME}; give the folder that fedexp export wrote")
    encoder = _parse(content)
    fault = encoder if isinstance(encoder, str) else _describe_fault(encoder)
    if isinstance(encoder, str) or fault:
        raise ConfigError(f"{display_path(path)} must be as fedexp export writes it, but {fault}; is it damaged?")
    return encoder


def _parse(content: Mapping[str, Any]) -> Encoder | str:
    """The encoder of plain values, its fields not yet checked; or what is wrong, in words."""
    names = [field.name for field in fields(Encoder)]
    if set(content) != set(names):
        return f"has {', '.join(sorted(content)) or 'nothing'}"
    values = {name: _frozen(content[name]) for name in names}
    for name in _COLUMNS:
        entries = content[name]
        keys = {field.name for field in fields(Column)}
        if not isinstance(entries, list) or not all(
            isinstance(entry, dict) and set(entry) == keys for entry in entries
        ):
            return f"{name} is no list of columns"
        values[name] = tuple(Column(**{key: _frozen(value) for key, value in entry.items()}) for entry in entries)
    if (text := content["text"]) is not None:
        if not isinstance(text, dict) or set(text) != {field.name for field in fields(TextFormat)}:
            return "text does not say how texts are cut"
        values["text"] = TextFormat(**text)
    return Encoder(**values)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _describe_fault(encoder: Encoder) -> str:
    """What in an encoder's values is of another kind or does not fit together, in words; empty if all does."""
    misfits = (describe_misfit(value) for value in (encoder, *encoder.columns, *encoder.target_columns))
    return next(filter(None, misfits), None) or _describe_contradiction(encoder) or _describe_tokens(encoder)


def _describe_contradiction(encoder: Encoder) -> str:
    numbers = (encoder.scale, *encoder.mean, *encoder.std)
    columns = (*encoder.columns, *encoder.target_columns)
    numbers += tuple(number for column in columns for number in (column.mean, column.std))
    if not all(map(math.isfinite, numbers)):
        return "a number in it is not finite"
    if min((encoder.scale, *encoder.std, *(column.std for column in columns)), default=1.0) <= 0:
        return "a scale or deviation in it is not above 0"
    if not encoder.shape or min(encoder.shape) < 1:
        return f"shape is {list(encoder.shape)}"
    if not all(len(column.bounds) == 2 and column.bounds[0] < column.bounds[1] for column in columns if column.bounds):
        return "the bounds of a column do not rise"
    if not {len(encoder.mean), len(encoder.std)} <= {1, encoder.shape[0]}:
        return f"mean and std are not of {encoder.shape[0]} channels"
    if encoder.columns and (sum(column.width for column in encoder.columns),) != encoder.shape:
        return f"its columns do not make {encoder.shape[0]} numbers"
    if encoder.target_columns and len(encoder.target_columns) != len(encoder.answers):
        return "its answers and target columns are not as many"
    return _describe_names(encoder) or (_describe_extreme(encoder) if encoder.answers else "it has no answers")


def _describe_names(encoder: Encoder) -> str:
    columns = (*encoder.columns, *encoder.target_columns)
    lists = [[column.name for column in columns], *(column.categories or () for column in columns)]
    if repeated := _first_repeated(*lists):
        return f"it has {repeated[:40]!r} twice"
    fault = None if encoder.targets == "tokens" else fault_in_column_names(encoder.answers, ())
    return f"its answers {fault}" if fault else ""


def _first_repeated(*lists: Sequence[str]) -> str:
    """The first name that one of the lists has twice; empty if none has."""
    return next((name for names in lists for name, count in Counter(names).items() if count > 1), "")


def _describe_extreme(encoder: Encoder) -> str:
    terms = torch.cat(factor_and_offset(encoder.scale, encoder.mean, encoder.std))
    return "" if terms.isfinite().all() else "its scale, mean and std take inputs beyond what float32 holds"


def _describe_tokens(encoder: Encoder) -> str:
    is_text = encoder.dtype == "int64" and len(encoder.shape) == 1 and encoder.vocabulary
    return "" if is_text or encoder.text is None else "its text has no tokens"
