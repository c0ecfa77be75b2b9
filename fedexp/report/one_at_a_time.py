"""Methods around a centre, each of which differs from it in one key: one family of methods for each key."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedexp.config.override_text import short_text
from fedexp.report.methods import Method, differing_keys, differing_options, options, settings


@dataclass(frozen=True, eq=False)
class Family:
    """The methods that differ in one key, the centre among them, by its values and named by them."""

    key: str
    methods: tuple[Method, ...]


def families(methods: Sequence[Method]) -> list[Family]:
    """A family for each of several keys; none where the methods do not lie around a centre in this way."""
    first = [method.runs[0] for method in methods]
    if differing_options([options(run) for run in first]):
        return []
    keys = [key for key in differing_keys(first) if not key.endswith("_target_")]
    texts = [[short_text(settings(run).get(key)) for key in keys] for run in first]
    centre = next((own for own in texts if all(_apart(own, other) <= 1 for other in texts)), None)
    if centre is None or len(keys) < 2:
        return []
    return [_family(keys, place, methods, texts, centre) for place in range(len(keys))]


def _apart(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(mine != yours for mine, yours in zip(one, other, strict=True))


def _family(
    keys: Sequence[str], place: int, methods: Sequence[Method], texts: Sequence[Sequence[str]], centre: Sequence[str]
) -> Family:
    """Values that are numbers in their order, others behind them in the order of the runs."""
    word = keys[place].rpartition(".")[2]
    members = [
        (own[place], method)
        for own, method in zip(texts, methods, strict=True)
        if own[:place] == centre[:place] and own[place + 1 :] == centre[place + 1 :]
    ]
    members.sort(key=lambda one: _number(one[0]))
    named = [
        replace(method, position=position, label=f"{word}={value}{' (centre)' if value == centre[place] else ''}")
        for position, (value, method) in enumerate(members)
    ]
    return Family(keys[place], tuple(named))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("inf")
