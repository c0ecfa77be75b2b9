"""Why methods side by side may not be fit for a ranking: other examples to train on, rounds that are not alike."""

from collections.abc import Callable, Iterator, Sequence

from fedexp.config.override_text import short_text
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run

HELD_OUT = ("personal_fraction", "own_test", "unseen_fraction", "validation")  # of evaluation: taken from training
_LISTED = 4  # methods by name


def unequal_conditions(methods: Sequence[Method]) -> Iterator[str]:
    """A sentence for each condition that is not the same for all methods."""
    for name in HELD_OUT:
        if values := _differing(methods, lambda run, name=name: short_text(run.config.get(f"evaluation.{name}") or 0)):
            key = f"evaluation.{name}"
            yield f"They do not train on the same examples: {key} is {values}. Set it alike for all."
    if values := _differing(methods, lambda run: short_text(run.config.get("rounds") or run.rounds[-1])):
        yield f"They do not train for as many rounds: rounds is {values}."
    if values := _differing(methods, lambda run: run.choices.get("pacing") or "synchronous"):
        yield (
            f"A round is not the same for all: pacing is {values}. Where it does not wait for all, a round is a step "
            "with what has arrived, so compare by selections or by simulated seconds and not round by round."
        )


def _differing(methods: Sequence[Method], value_of: Callable[[Run], str]) -> str:
    """The values with the methods that have them, in words; empty where all have the same."""
    labels: dict[str, list[str]] = {}
    for method in methods:
        labels.setdefault(value_of(method.runs[0]), []).append(method.label)
    if len(labels) < 2:
        return ""
    return " and ".join(f"{value} for {_names(names)}" for value, names in labels.items())


def _names(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + suffix
