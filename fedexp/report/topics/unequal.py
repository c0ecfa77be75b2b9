"""Why methods side by side may not be fit for a ranking: other examples to train on, rounds that are not alike."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from fedexp.config.override_text import short_text
from fedexp.files import run_tables
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run

_LISTED = 4  # methods by name


def unequal_conditions(methods: Sequence[Method]) -> Iterator[str]:
    """A sentence for each condition that is not the same for all methods."""
    runs = _runs_of_one_seed(methods)
    if values := _differing(methods, runs, _training_examples):
        yield (
            f"The methods do not train on as many examples: {values}. Hold out the same for all, by "
            "evaluation.validation, personal_fraction, unseen_fraction, own_test and scenario.public_fraction."
        )
    if values := _differing(methods, runs, lambda run: short_text(run.config.get("rounds") or run.rounds[-1])):
        yield f"The methods do not train for as many rounds: {values}."
    if values := _differing(methods, runs, lambda run: f"pacing={run.choices.get('pacing') or 'synchronous'}"):
        yield (
            f"A round is not the same for all methods: {values}. Where the server does not wait for all, a round is a "
            "step with what has arrived, so compare by selections or by simulated seconds and not round by round."
        )


def _runs_of_one_seed(methods: Sequence[Method]) -> list[Run]:
    """A run of each method, all of the first seed that all have; the first of each if they share none."""
    by_seed = [{run.seed: run for run in reversed(method.runs)} for method in methods]
    seed = next((run.seed for run in methods[0].runs if all(run.seed in runs for runs in by_seed)), None)
    return [runs.get(seed, method.runs[0]) for runs, method in zip(by_seed, methods, strict=True)]


def _training_examples(run: Run) -> str:
    """How many examples the clients hold for training; empty where no table tells."""
    table = run_tables.read_frame(run.folder / "federation.csv", ("client",))
    if "examples" not in table:  # of an old run
        return ""
    examples = np.asarray(pd.to_numeric(table["examples"], errors="coerce"), dtype=np.float64)
    return f"{np.nansum(examples):,.0f}"


def _differing(methods: Sequence[Method], runs: Sequence[Run], value_of: Callable[[Run], str]) -> str:
    """The values, each with the methods that have it; empty where all have the same, or nobody knows."""
    labels: dict[str, list[str]] = {}
    for method, run in zip(methods, runs, strict=True):
        labels.setdefault(value_of(run), []).append(method.label)
    labels.pop("", None)
    return ", ".join(f"{value} ({_names(names)})" for value, names in labels.items()) if len(labels) > 1 else ""


def _names(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return "; ".join(names[:_LISTED]) + suffix
