"""The first screen of a report: what was run, and what came out of it."""

from collections.abc import Sequence

import numpy as np

from fedexp.config import catalog, roles
from fedexp.config.location import conf_dir
from fedexp.config.override_text import short_text
from fedexp.core.join_first import join_first
from fedexp.maths.curve_metrics import higher_is_better
from fedexp.maths.metric_names import metric_text
from fedexp.maths.significance import pairs_needed
from fedexp.report.draw.picture_data import number_text
from fedexp.report.read import sweeps
from fedexp.report.read.measures import Statistic
from fedexp.report.read.methods import Method, changed_words, options
from fedexp.report.read.runs import Run
from fedexp.report.topics.tables import Table

_NAMED = {  # groups that every report names
    "dataset": "Data",
    "federation": "Split",
    "model": "Model",
    "local": "Local rule",
    "selector": "Selection",
    "aggregator": "Aggregation",
}
_LISTED = 6  # methods by name
_EACH = " (of the model that each client uses)"
COMMAND = "Command"
_BYZANTINE = "scenario.byzantine"  # whose default follows from other keys
Fact = tuple[str, str]


def facts(methods: Sequence[Method]) -> list[Fact]:
    """What all methods have in common as (term, description); first what is compared, where there are several."""
    shared, command = shared_facts(methods), command_facts(methods)
    tuning = sweeps.contest_text([run.folder for method in methods for run in method.runs])
    shared += [("Tuned", tuning)] if tuning else []
    if len(methods) == 1:
        return [*shared, *command]
    compared = ("Compared", join_first([method.label for method in methods], _LISTED, "; "))
    terms = dict.fromkeys(term for method in methods for term in _describe(method.runs[0]))
    differing = ", ".join(term for term in terms if term not in dict(shared))
    return [
        compared,
        *shared,
        *([("Not the same for all", f"{differing} (see Differences)")] if differing else []),
        *command,
    ]


def shared_facts(methods: Sequence[Method]) -> list[Fact]:
    """What all methods have in common, as (term, description)."""
    described = [_describe(method.runs[0]) for method in methods]
    return [(term, text) for term, text in described[0].items() if all(terms.get(term) == text for terms in described)]


def command_facts(methods: Sequence[Method]) -> list[Fact]:
    """The command that ran them, if a folder tells it."""
    command = sweeps.commands([run.folder for method in methods for run in method.runs])
    return [(COMMAND, command)] if command else []


def outcome(tables: Sequence[Table]) -> str:
    """What came out, in a few sentences: from the results and, where clients have models of their own, from theirs."""
    table = tables[0]
    ranked = _by_mean(table, f"final {table.metric}")
    if not ranked:
        return f"No run measured its {metric_text(table.metric)} on test data."
    first = _best_first("Final test", table, f"final {table.metric}", ranked)
    clients = next((table for table in tables if table.name == "at_clients"), None)
    personal = f"personal {table.metric}"
    if (
        clients is not None
        and any(name.startswith("site ") for name in clients.quantities)
        and personal in clients.rows[0]
    ):
        first = f"{first} {_best_first('Personal', clients, personal, _by_mean(clients, personal), _EACH)}"
    if len(ranked) == 1:
        return first
    fewest = pairs_needed(1)
    chance = (
        "Whether differences are more than chance is tested by fedexp compare."
        if min(value.count for _, value in ranked) >= fewest
        else f"With fewer than {fewest} seeds of each method no difference can be shown to be more than chance."
    )
    return f"{first} {chance}"


def _by_mean(table: Table, name: str) -> list[tuple[str, Statistic]]:
    """The labels of the methods that have a number, the best mean first."""
    values = [(method.label, row[name]) for method, row in zip(table.methods, table.rows, strict=True) if name in row]
    sign = -1 if higher_is_better(table.metric) else 1
    return sorted(
        ((label, value) for label, value in values if value.mean is not None),
        key=lambda pair: sign * (pair[1].mean or 0.0),
    )


def _best_first(words: str, table: Table, name: str, ranked: Sequence[tuple[str, Statistic]], of_what: str = "") -> str:
    """A sentence with the numbers of the methods in their order."""
    texts = [f"{label} {table.cell(name, value)}" for label, value in ranked]
    seeds = sorted({value.count for _, value in ranked})
    seed_text = f"{seeds[0]} seed{'s' * (seeds[0] > 1)}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    measure = f"{words} {metric_text(table.metric)}{' in %' if table.is_in_percent(name) else ''}{of_what}"
    if len(texts) == 1:
        return f"{measure} of {texts[0]}, {seed_text}."
    order = "highest" if higher_is_better(table.metric) else "lowest"
    return f"{measure}, {order} mean first ({seed_text}): {join_first(texts, _LISTED, '; ')}."


def _describe(run: Run) -> dict[str, str]:
    chosen = options(run)
    usual = {role.name: role.default for role in roles.all_roles()} | catalog.defaults(conf_dir())
    other_groups = [role.name for role in roles.all_roles() if role.changes_results and role.name not in _NAMED]
    texts = {group: part_text(run, group, chosen[group]) for group in (*_NAMED, *other_groups) if group in chosen}
    described = {
        _NAMED.get(group, group.replace("_", " ").capitalize()): text
        for group, text in texts.items()
        if group in _NAMED or text != usual[group]
    }
    described["Clients"] = f"{len(run.selections):,}" if len(run.selections) else ""
    described["Participants"] = _participants(run)
    described["Local work"] = _local_work(run)
    rate = run.config.get("local.lr")
    described["Learning rate"] = short_text(rate) if rate else ""
    planned = run.config.get("rounds")
    described["Rounds"] = f"{len(run.metrics) if planned is None else planned}"
    described["Held out"] = _held_out(run)
    scenario = catalog.changed_scenario(conf_dir(), lambda key: run.config.get(f"scenario.{key}"))
    if "${" not in str(run.raw_config.get(_BYZANTINE, "${")):
        scenario.append(f"byzantine={short_text(run.config[_BYZANTINE])}")
    if scenario:
        described["Scenario"] = ", ".join(scenario)
    return {term: text for term, text in described.items() if text}


def part_text(run: Run, group: str, option: str) -> str:
    """The option of a group, in brackets its keys that are not at their defaults."""
    inner = catalog.inner_choices(conf_dir(), group, option).items()
    chosen = options(run)
    words = [f"{key.rpartition('.')[2]}={chosen[key]}" for key, usual in inner if chosen.get(key, usual) != usual]
    words += changed_words(run, group)
    return f"{option} ({', '.join(words)})" if words else option


def _local_work(run: Run) -> str:
    config = run.config
    steps, epochs = config.get("local.steps"), config.get("local.epochs")
    number, unit = (steps, "step") if steps is not None else (epochs, "epoch")
    work = f"{short_text(number)} {unit}{'s' * (number != 1)}" if number is not None else ""
    size = config.get("local.batch_size")
    parts = [work, f"batches of {short_text(size)}" if size is not None else ""]
    return ", ".join(part for part in parts if part)


def _held_out(run: Run) -> str:
    """What of the training data no client trains on, and which clients never train."""
    config, count = run.config, (run.summary or {}).get("validation_examples")
    is_validated = bool(count) or bool(config.get("evaluation.validation"))
    share = config.get("evaluation.validation_fraction") if is_validated else None
    at_clients = config.get("evaluation.validation_at") == "clients"
    of_server, of_clients = (None, share) if at_clients else (share, None)
    split = ", one class after the other" * (config.get("evaluation.personal_split") == "by_class")
    parts = {
        "of the training examples for validation": of_server,
        "of the training examples as public data": config.get("scenario.public_fraction"),
        f"of each client's examples to measure its model on{split}": config.get("evaluation.personal_fraction"),
        "of each client's remaining examples for validation of its model": of_clients,
        "of the clients never train": config.get("evaluation.unseen_fraction"),
    }
    return ", ".join(f"{100 * share:g} % {text}" for text, share in parts.items() if isinstance(share, float) and share)


def _participants(run: Run) -> str:
    participants = run.column("participants")
    finite = participants[np.isfinite(participants)]
    return f"{number_text(float(finite.mean()))} a round" if len(finite) else ""
