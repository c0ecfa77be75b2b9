"""Methods around a centre, each of which differs from it in one key: one family of methods for each key."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedexp.config.override_text import short_text
from fedexp.report.read.methods import Method, differing_keys, differing_options, options, settings


@dataclass(frozen=True, eq=False)
class OneKeyVariation:
    """The methods that differ in one key, the centre among them, by its values and named by them."""

    key: str
    methods: tuple[Method, ...]


def one_key_variations(methods: Sequence[Method]) -> list[OneKeyVariation]:
    """A family for each of several keys; none where the methods do not lie around a centre in this way."""
    first = [method.runs[0] for method in methods]
    if differing_options([options(run) for run in first]):
        return []
    keys = [key for key in differing_keys(first) if not key.endswith("_target_")]
    texts = [[short_text(settings(run).get(key)) for key in keys] for run in first]
    centre = next((row for row in texts if all(_count_differences(row, other_row) <= 1 for other_row in texts)), None)
    if centre is None or len(keys) < 2:
        return []
    return [_variation(keys, column, methods, texts, centre) for column in range(len(keys))]


def _count_differences(a: Sequence[str], b: Sequence[str]) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True))


def _variation(
    keys: Sequence[str], column: int, methods: Sequence[Method], texts: Sequence[Sequence[str]], centre: Sequence[str]
) -> OneKeyVariation:
    """Values that are numbers in their order, others behind them in the order of the runs."""
    word = keys[column].rpartition(".")[2]
    members = [
        (row[column], method)
        for row, method in zip(texts, methods, strict=True)
        if row[:column] == centre[:column] and row[column + 1 :] == centre[column + 1 :]
    ]
    members.sort(key=lambda member: _number(member[0]))
    named = [
        replace(method, position=position, label=f"{word}={value}{' (centre)' if value == centre[column] else ''}")
        for position, (value, method) in enumerate(members)
    ]
    return OneKeyVariation(keys[column], tuple(named))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("inf")
