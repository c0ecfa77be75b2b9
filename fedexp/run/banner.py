"""The first lines of a run: its parts, its size, and settings that have no effect."""

from collections.abc import Iterator
from functools import reduce

from fedexp.config import catalog, roles
from fedexp.config.location import conf_dir
from fedexp.core.part import option
from fedexp.parts.attack.contract import Attack
from fedexp.parts.byzantine import Tolerant
from fedexp.parts.fleet.contract import Fleet
from fedexp.simulation.setup.experiment import Experiment

GROUPS = ("dataset", "federation", "model", "local", "selector", "aggregator")  # always named


def lines(exp: Experiment, clients: int) -> Iterator[str]:
    """Describes the parts, and how many of the `clients` take part."""
    yield " ".join(_words(exp))
    participants = exp.selector.clients_per_round(clients)
    all_clients = _with_unit(clients, "client")
    usual = all_clients if participants is None else f"{participants} of {all_clients} a round"
    participation = exp.pacing.describe(clients, usual)
    yield (
        f"{_with_unit(exp.rounds, 'round')}, {participation}, {_local_work(exp)} of batches of {exp.local.batch_size} "
        f"at rate {exp.local.lr:g}"
    )
    yield from _training(exp)


def notes(exp: Experiment, clients: int) -> Iterator[str]:
    """What may not be meant: settings that have no effect, and what clients that train alone share all the same."""
    if exp.scenario.trains_alone and (shared := exp.dataset.leaks()):
        yield (
            "every client trains alone, but its examples are encoded by what was learnt of everybody's: "
            f"{shared.removeprefix('nor is ').removeprefix('nor are ')}"
        )
    if exp.dataset.shared_samples and (exp.evaluation.personal or exp.needs_validation):
        yield (
            "scores on examples that clients hold out or set apart are too good, since "
            f"{exp.dataset.shared_samples}; those on the test data are not"
        )
    yield from without_effect(exp, clients)
    if isinstance(exp.aggregator, Tolerant) and not exp.scenario.malicious:
        yield from _lacking_bounds(exp.aggregator, exp.selector.clients_per_round(clients) or clients, 0)
    if type(exp.attack) is Attack and exp.scenario.malicious:
        yield f"scenario.malicious={exp.scenario.malicious}, but nobody attacks: choose an attack"


def without_effect(exp: Experiment, clients: int) -> Iterator[str]:
    """What was chosen and does nothing, or less than its name says, so that a table would mislead."""
    participants = exp.selector.clients_per_round(clients)
    yield from _learning_without_effect(exp, clients, participants)
    yield from _pacing_without_effect(exp, clients, participants)
    yield from _attack_without_effect(exp, clients, participants)


def _words(exp: Experiment) -> Iterator[str]:
    """The parts as they would be typed, with those of their keys that are not at their defaults."""
    usual = {role.name: role.default for role in roles.all_roles()} | catalog.defaults(conf_dir())
    other_roles = [role for role in roles.all_roles() if role.changes_results and role.name not in GROUPS]
    for group in (*GROUPS, *(role.name for role in other_roles)):
        part = exp.part(group)
        idle = any(type(part) is role.kind for role in other_roles if role.name == group)
        name = usual[group] if idle else option(part)
        keys = catalog.changed_keys(conf_dir(), group, name, lambda key, part=part: _attribute(part, key))
        if group in GROUPS or keys or name != usual[group]:
            inner = (f"{key}={value}" for key, value in _inner_options(part, group, name).items())
            yield from (f"{group}={name}", *inner, *(f"{group}.{key}" for key in keys))


def _inner_options(part: object, group: str, name: str) -> dict[str, str]:
    """The options of parts inside of this one that are others than its file chooses, by `GROUP@KEY`."""
    usual = catalog.inner_choices(conf_dir(), group, name)
    chosen = {key: option(getattr(part, key.rpartition(".")[2])) for key in usual}
    return {key: value for key, value in chosen.items() if value != usual[key]}


def _attribute(part: object, key: str) -> object:
    """The value of a dotted key; None if the part keeps none under this name."""
    value = reduce(lambda node, name: getattr(node, name, None), key.split("."), part)
    return value if isinstance(value, bool | int | float | str | list | tuple) else None


def _training(exp: Experiment) -> Iterator[str]:
    if exp.scenario.trains_alone:
        yield "every client trains alone: nothing is averaged, and scores on test data are the means of their models"
    if exp.scenario.pools_data:
        yield "central training: one client has the examples of all, and measures stay with those whose they are"


def _learning_without_effect(exp: Experiment, clients: int, participants: int | None) -> Iterator[str]:
    scenario = exp.scenario
    if participants == clients and exp.selector.learns:
        yield (
            f"selector={option(exp.selector)} has nothing to choose: all {clients} clients take part in every round; "
            "lower scenario.participants or raise scenario.clients"
        )
    if participants == clients < scenario.participants and not scenario.pools_data:
        yield f"scenario.participants={scenario.participants} is more than there are clients: all {clients} take part"
    if exp.evaluation.validates_at_clients and not exp.needs_validation:
        yield "evaluation.validation_at=clients has nothing to measure: add evaluation.validation=true"
    if exp.evaluation.local_models and not exp.evaluation.test:
        yield "evaluation.local_models=true does nothing with evaluation.test=false: it scores on the test data"
    for key, value in exp.local.adds_nothing_at.items():
        if getattr(exp.local, key) == value:
            text = [*value] if isinstance(value, tuple) else f"{value:g}"
            yield f"local.{key}={text} turns off what local={option(exp.local)} adds: its steps are plain ones"


def _attack_without_effect(exp: Experiment, clients: int, participants: int | None) -> Iterator[str]:
    scenario, attack = exp.scenario, option(exp.attack)
    attacked = scenario.malicious and type(exp.attack) is not Attack and not scenario.pools_data
    if isinstance(exp.aggregator, Tolerant) and attacked:
        count = exp.pacing.most_uploads(participants or clients)
        yield from _lacking_bounds(exp.aggregator, count, count * scenario.malicious / clients)
    if type(exp.attack) is not Attack and not scenario.malicious:
        yield f"attack={attack} does nothing: nobody is malicious; set scenario.malicious"
    if scenario.malicious and participants and not exp.pacing.overlaps:
        expected = round(participants * scenario.malicious / clients)
        if reason := exp.attack.why_harmless(participants, expected):
            yield f"attack={attack} does no harm: {reason}"


def _lacking_bounds(rule: Tolerant, uploads: int, malicious: float) -> Iterator[str]:
    """Why a robust rule guards against fewer than the `malicious` ones that a round has on average."""
    guarded, name = rule.guards_against(uploads), option(rule)
    if rule.bound_key == "byzantine" and guarded < rule.byzantine:
        return  # too few uploads for what it is told, as each round says
    if not guarded:
        alternative = "scenario.malicious, or " if not malicious and rule.bound_key == "byzantine" else ""
        yield (
            f"aggregator={name} expects no bad upload in a round and guards against none; set {alternative}"
            f"aggregator.{rule.bound_key}"
        )
    elif guarded < malicious:
        yield (
            f"aggregator={name} expects {_with_unit(guarded, 'bad upload')} in a round, but of its {uploads} "
            f"uploads {malicious:.3g} are malicious on average; raise aggregator.{rule.bound_key}"
        )


def _pacing_without_effect(exp: Experiment, clients: int, participants: int | None) -> Iterator[str]:
    wanted = exp.pacing.most_uploads(participants or clients)
    if exp.pacing.overlaps and not exp.pacing.has_period and wanted > clients:
        yield (
            f"pacing={option(exp.pacing)} waits for {wanted} uploads a step, but a client is asked at most once a "
            f"step, so that there are {clients} at most"
        )
    for role, part in {"pacing": exp.pacing, "fleet": exp.fleet}.items():
        for idle, key in part.idle_keys.items():
            value = getattr(part, key)
            cause = f"{key}={value}" if isinstance(value, str | float) else key
            yield f"{role}.{idle} does nothing with {role}.{cause}"
    if exp.pacing.overlaps and type(exp.fleet) is Fleet:
        yield (
            f"pacing={option(exp.pacing)} with fleet=none: all clients take the same time, so none is late because it "
            "is slow; set fleet=simulated"
        )
    if exp.pacing.needs_fleet and participants == exp.pacing.most_uploads(participants or 0):
        yield (
            f"pacing={option(exp.pacing)} throws nobody away: all {participants} clients that take part count; raise "
            "scenario.participants or lower pacing.uploads"
        )


def _local_work(exp: Experiment) -> str:
    if exp.local.steps is not None:
        return _with_unit(exp.local.steps, "step")
    if isinstance(exp.local.epochs, tuple):
        return "{} to {} epochs".format(*exp.local.epochs)
    return _with_unit(exp.local.epochs or 0, "epoch")


def _with_unit(number: float, unit: str) -> str:
    return f"{number:g} {unit}" if number == 1 else f"{number:g} {unit}s"
