"""Why methods side by side may not be fit for a ranking: failed runs, other examples, rounds or megabytes."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fedexp.config.override_text import short_text
from fedexp.core.join_first import join_first
from fedexp.files import run_tables
from fedexp.files.atomic import display_path
from fedexp.report.read import clocks
from fedexp.report.read.methods import Method, options
from fedexp.report.read.runs import Run
from fedexp.report.read.skipped import of_run, reason_text
from fedexp.report.topics.setup import part_text

_LISTED = 4  # methods by name


def unequal_conditions(methods: Sequence[Method]) -> Iterator[str]:
    """A sentence for each condition that is not the same for all methods."""
    yield from _failed_runs(methods)
    yield from _skipped_rounds(methods)
    yield from _lowered_bounds(methods)
    yield from _constant_answers(methods)
    yield from _without_effect(methods)
    runs = _runs_of_one_seed(methods)
    if values := _differing(methods, runs, _data):
        yield f"The methods are of different data: {values}. Their numbers do not compare."
    elif values := _differing(methods, runs, _split):
        yield f"The methods run on different splits: {values}. What looks like a method's may be the split's."
    elif values := _differing(methods, runs, _training_examples):
        yield (
            f"The methods train on unequal numbers of examples: {values}. Hold out the same for all, by "
            "evaluation.validation, personal_fraction, unseen_fraction, own_test and scenario.public_fraction."
        )
    if values := _differing(methods, runs, lambda run: short_text(run.config.get("rounds") or run.rounds[-1])):
        yield f"The methods train for unequal numbers of rounds: {values}."
    if values := _differing(methods, runs, _megabytes):
        yield (
            f"The methods send unequal numbers of megabytes: {values}; fedexp compare refuses to test them against "
            "each other unless --unequal megabytes says that this is meant."
        )
    if values := _differing(methods, runs, _validation):
        yield f"Validation scores are of two kinds: {values}. They do not compare."
    yield from _unequal_clocks(methods, runs)
    yield from _personal_models(methods)


def _unequal_clocks(methods: Sequence[Method], runs: Sequence[Run]) -> Iterator[str]:
    """Why rounds or simulated seconds are not the same for all methods."""
    has_two_clocks = clocks.share_link_differently(run for method in methods for run in method.runs)
    if values := _differing(methods, runs, lambda run: f"pacing={run.choices.get('pacing') or 'synchronous'}"):
        yield (
            f"A round is not the same for all methods: {values}. Where the server does not wait for all, a round is a "
            f"step with what has arrived, so compare by selections{' or by simulated seconds' * (not has_two_clocks)} "
            "and not round by round."
        )
    if has_two_clocks:
        yield f"{clocks.NOTE[0].upper()}{clocks.NOTE[1:]}."


def _validation(run: Run) -> str:
    """Whose models are scored on whose validation examples; empty where none are."""
    if not run.config.get("evaluation.validation"):
        return ""
    at_clients = run.config.get("evaluation.validation_at") == "clients"
    return "clients' models on their own examples" if at_clients else "the global model on the server's examples"


def _failed_runs(methods: Sequence[Method]) -> Iterator[str]:
    for method in methods:
        failed = [display_path(run.folder) for run in method.runs if run.has_failed]
        if failed:
            yield (
                f"{method.label} failed in {len(failed)} of {len(method.runs)} run(s): no update of any round was "
                f"finite, so the numbers of {', '.join(failed[:_LISTED])} are those of the first model."
            )


def _skipped_rounds(methods: Sequence[Method]) -> Iterator[str]:
    """In how many rounds the model of a method stayed as it was."""
    for method in methods:
        skipped = [(run, rounds) for run in method.runs if (rounds := of_run(run))]
        if skipped:
            total = sum(len(run.rounds) for run in method.runs)
            run, rounds = skipped[0]
            reason = reason_text(run, rounds)
            yield (
                f"{method.label}: in {sum(len(rounds) for _, rounds in skipped)} of {total} rounds of "
                f"{len(method.runs)} run(s) the model stayed as it was"
                f"{f' ({display_path(run.folder)}: {reason})' if reason else ''}."
            )


def _constant_answers(methods: Sequence[Method]) -> Iterator[str]:
    """Whose final accuracy is no better than the share of one class."""
    for method in methods:
        constant = [run for run in method.runs if (run.summary or {}).get("constant_answer")]
        if constant:
            yield (
                f"The accuracy of {method.label} is no better than a single answer's in {len(constant)} of "
                f"{len(method.runs)} run(s): "
                f"{(constant[0].summary or {})['constant_answer']} ({display_path(constant[0].folder)})."
            )


def _without_effect(methods: Sequence[Method]) -> Iterator[str]:
    """What the runs said of settings that do nothing, each with the methods that it is about."""
    labels: dict[str, dict[str, None]] = {}
    for method in methods:
        for run in method.runs:
            for note in (run.summary or {}).get("without_effect") or ():
                labels.setdefault(str(note), {})[method.label] = None
    yield from (f"{join_first([*names], _LISTED, '; ')}: {note}." for note, names in labels.items())


def _lowered_bounds(methods: Sequence[Method]) -> Iterator[str]:
    """What a rule against attackers really tolerated, where a round had too few updates for what was asked."""
    lowered = [
        f"{method.label} (f = {_numbers(used)} instead of {_numbers(limits)})"
        for method in methods
        for used, limits in [_byzantine(method)]
        if used
    ]
    if lowered:
        yield (
            "Rounds had too few updates for the number of attackers f that a rule was told, so it went on with "
            f"fewer: {'; '.join(lowered)}. Ask more clients a round, or lower scenario.byzantine."
        )


def _personal_models(methods: Sequence[Method]) -> Iterator[str]:
    measured = ("evaluation.personal_fraction", "evaluation.own_test")
    if any(run.config.get(key) for key in measured for method in methods for run in method.runs):
        yield (
            "Test measures are of the global model, of which a personal method may make no use (with "
            "`scenario.training=local` they are the mean over the clients' models). Personal measures are of the model "
            "that each client uses, on examples that it held out or on its own test examples: judge personal methods "
            "by these."
        )


def _byzantine(method: Method) -> tuple[set[float], set[float]]:
    """The lowered numbers of attackers that its rule used, and those that it was told."""
    used: set[float] = set()
    pairs = [(run, role) for run in method.runs for role in ("pre_aggregation", "aggregator")]
    for run, role in pairs:
        values = run.column(f"{role}.byzantine")[run.column(f"{role}.violated") == 1]
        used |= set(values[np.isfinite(values)].tolist())
    numbers = (run.config.get(f"{role}.byzantine") for run, role in pairs)
    return used, {float(number) for number in numbers if isinstance(number, int | float)}


def _numbers(values: set[float]) -> str:
    return " to ".join(f"{value:g}" for value in sorted({min(values, default=0), max(values, default=0)}))


def _runs_of_one_seed(methods: Sequence[Method]) -> list[Run]:
    """A run of each method, all of the first seed that all have; the first of each if they share none."""
    by_seed = [{run.seed: run for run in reversed(method.runs)} for method in methods]
    seed = next((run.seed for run in methods[0].runs if all(run.seed in runs for runs in by_seed)), None)
    return [runs.get(seed, method.runs[0]) for runs, method in zip(by_seed, methods, strict=True)]


def _data(run: Run) -> str:
    """The run's data, and the beginning of its digest; empty where no summary tells it."""
    digest = str((run.summary or {}).get("data_sha256") or "")
    return f"{run.choices.get('dataset') or 'data'} {digest[:6]}" if digest else ""


def _split(run: Run) -> str:
    """The run's split with its numbers, and its number of clients; empty where nobody knows, or one has all data."""
    option = options(run).get("federation") if run.config.get("scenario.training") != "central" else None
    return f"{part_text(run, 'federation', option)} of {len(run.selections):,} clients" if option else ""


def _training_examples(run: Run) -> str:
    """How many examples the clients hold for training; empty where no table tells."""
    table = run_tables.read_frame(run.folder / "federation.csv", ("client",))
    examples = np.nansum(run_tables.numbers(table, "examples"))
    return f"{examples:,.0f}" if examples else ""


def _megabytes(run: Run) -> str:
    """What was sent both ways; empty of unfinished runs, of those that send nothing, and where nobody knows."""
    if not run.is_finished or run.config.get("scenario.training") in ("local", "central"):
        return ""
    sent = np.nansum(run.column("mb_down")) + np.nansum(run.column("mb_up"))
    return (f"{sent:,.0f}" if sent >= 1000 else f"{sent:.4g}") if sent else ""


def _differing(methods: Sequence[Method], runs: Sequence[Run], value_of: Callable[[Run], str]) -> str:
    """The values, each with the methods that have it; empty where all have the same, or nobody knows."""
    labels: dict[str, list[str]] = {}
    for method, run in zip(methods, runs, strict=True):
        labels.setdefault(value_of(run), []).append(method.label)
    labels.pop("", None)
    texts = (f"{value} ({join_first(names, _LISTED, '; ')})" for value, names in labels.items())
    return ", ".join(texts) if len(labels) > 1 else ""
