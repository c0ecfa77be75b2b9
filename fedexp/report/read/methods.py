"""Runs grouped into methods: everything but the seed is the same, and the label says what differs between them.

Of several runs of one seed one counts: they repeat each other, and a mean over them would say nothing of chance.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedexp.config import catalog, roles
from fedexp.config.location import conf_dir
from fedexp.config.override_text import short_text
from fedexp.report.read.runs import CODE, Run

BUNDLES = ("algorithm", "experiment")
_NAMING = ("selector", "aggregator", "local", "attack", "clustering", "privacy", "server_optimizer", "codec")
IDLE_OPTIONS = ("none", "constant")  # options that do nothing, of groups that came after the first runs
# These change neither what is computed nor what is measured about it.
_INDIFFERENT = ("checkpoint_s", "keep_states", "pictures", "evaluation.roa", "evaluation.toa", "evaluation.rank_on")

Options = dict[str, str]


@dataclass(frozen=True, eq=False)
class Method:
    """Runs that differ in the seed only, one a seed; its position gives it the same colour in every picture.

    Where some are finished, only these count.
    """

    position: int
    label: str
    runs: tuple[Run, ...]
    repeats: tuple[Run, ...] = ()  # more runs of these seeds, which no figure counts
    unfinished: tuple[Run, ...] = ()  # which no figure counts either, as others are finished

    @property
    def unfinished_count(self) -> int:
        return len(self.unfinished) + sum(not run.is_finished for run in self.runs)

    @property
    def every_run(self) -> tuple[Run, ...]:
        """One run a seed, unfinished ones too."""
        return (*self.runs, *self.unfinished)

    @property
    def members(self) -> tuple[Run, ...]:
        """All its runs, repeats too."""
        return (*self.every_run, *self.repeats)


def group_runs(runs: Iterable[Run]) -> list[Method]:
    """The methods, in the order in which they first appear; an algorithm is the same as its parts by themselves."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        parts = {name: option for name, option in options(run).items() if name not in BUNDLES}
        groups.setdefault((freeze(parts), freeze(settings(run))), []).append(run)
    names = labels([members[0] for members in groups.values()])
    return [
        Method(position, label, *_split(members))
        for position, (label, members) in enumerate(zip(names, groups.values(), strict=True))
    ]


def labels_beside(runs: Sequence[Run], roundless: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs without a round by their methods, named as beside the others."""
    if not roundless:
        return {}
    groups = group_runs([*runs, *roundless])
    lost = {method.label: [run for run in method.members if not run.has_rounds] for method in groups}
    return {label: members for label, members in lost.items() if members}


def _split(members: Sequence[Run]) -> tuple[tuple[Run, ...], tuple[Run, ...], tuple[Run, ...]]:
    """One run a seed, its repeats, and those that are not finished though others are.

    It is the first finished run of the seed, else the first; who has no seed repeats nobody.
    """
    chosen: dict[Any, Run] = {}
    for run in members:
        key = id(run) if run.seed is None else run.seed
        if key not in chosen or (run.is_finished and not chosen[key].is_finished):
            chosen[key] = run
    finished = tuple(run for run in chosen.values() if run.is_finished)
    counted = finished or tuple(chosen.values())
    unfinished = tuple(run for run in chosen.values() if run not in counted)
    return counted, tuple(run for run in members if run not in (*counted, *unfinished)), unfinished


def options(run: Run) -> Options:
    """The options of the groups that define a method; defaults for groups that are newer than the run."""
    ignored = {*roles.role_names(changes_results=False), "hydra"}
    chosen = {
        name: option for name, option in run.choices.items() if option is not None and name.split("/")[0] not in ignored
    }
    if not chosen:
        return chosen
    idle = {name: default for default in IDLE_OPTIONS for name in sorted(roles.role_names(default=default))}
    return {**idle, **chosen}


def settings(run: Run) -> dict[str, Any]:
    """The config keys that define a method, without null values and keys of parts that do nothing."""
    idle = tuple(f"{role.name}." for role in roles.all_roles() if role.is_idle(_group_config(run, role.name)))
    return {
        key: value
        for key, value in run.config.items()
        if value is not None
        and key not in _INDIFFERENT
        and not key.startswith(idle)
        and not roles.changes_no_result(key)
    }


def changed_words(run: Run, group: str) -> list[str]:
    """The keys of a run's part that are not at their defaults, as `key=value`."""
    option = options(run).get(group)
    if option is None:
        return []
    return catalog.changed_keys(conf_dir(), group, option, lambda key: run.config.get(f"{group}.{key}"))


def _group_config(run: Run, name: str) -> dict[str, Any]:
    """What the config says of a group, as it was composed: nothing where the run is too old to know it."""
    node = {key.removeprefix(f"{name}."): value for key, value in run.config.items() if key.startswith(f"{name}.")}
    return {name: node} if node else {}


def labels(runs: Sequence[Run]) -> list[str]:
    """One short text for each method, given by one of its runs: the options, then the keys that tell it from others."""
    if len(runs) == 1:
        return [single_label(runs[0])]
    words = _option_words([options(run) for run in runs])
    peers: dict[Any, list[int]] = {}
    for position, run in enumerate(runs):
        peers.setdefault(freeze(options(run)), []).append(position)
    for positions in peers.values():
        for position, key_words in zip(positions, _key_words([runs[position] for position in positions]), strict=True):
            words[position] += key_words
    names = [", ".join(parts) or single_label(run) for parts, run in zip(words, runs, strict=True)]
    return [_number_duplicate(name, names[:position]) for position, name in enumerate(names)]


def single_label(run: Run) -> str:
    """What a run is called where nothing stands beside it: its algorithm, or up to three parts that are not usual."""
    chosen, usual = options(run), catalog.defaults(conf_dir())
    unusual = [option for role in _NAMING if (option := chosen.get(role, usual[role])) != usual[role]]
    return (
        chosen.get("algorithm")
        or ", ".join(unusual[:3])
        or chosen.get("aggregator")
        or chosen.get("selector")
        or run.folder.name
    )


def differing_options(chosen: Sequence[Options]) -> list[str]:
    """The groups whose option is not the same everywhere; those that methods are usually named by stand first."""
    names = dict.fromkeys([*BUNDLES, "selector", *(name for run_options in chosen for name in run_options)])
    return [name for name in names if len({run_options.get(name) for run_options in chosen}) > 1]


def differing_keys(runs: Sequence[Run]) -> list[str]:
    """The keys whose value is not the same everywhere, without those that only follow another key."""
    configs, written = [settings(run) for run in runs], [run.raw_config for run in runs]
    names = dict.fromkeys(key for config in configs for key in config)
    return [name for name in names if _differs(name, configs) and _differs(name, written)]


def _option_words(chosen: Sequence[Options]) -> list[list[str]]:
    """The differing options of each method, without those that its algorithm or experiment always brings.

    Beside algorithms, a method that is none of them is named by its parts that are not usual.
    """
    names, usual = differing_options(chosen), catalog.defaults(conf_dir())
    unambiguous = {name for name in names if _is_unambiguous(name, names, chosen)}
    words = []
    for run_options in chosen:
        bundles = {name: run_options[name] for name in BUNDLES if name in names and name in run_options}
        allies = [candidate for candidate in chosen if bundles and bundles.items() <= candidate.items()]
        free = [name for name in names if name in BUNDLES or len({ally.get(name) for ally in allies}) != 1]
        if "algorithm" in names and "algorithm" not in bundles:
            free = [name for name in free if name not in _NAMING or run_options.get(name, usual[name]) != usual[name]]
        words.append(
            [
                run_options[name] if name in unambiguous else f"{name}={run_options[name]}"
                for name in free
                if name in run_options
            ]
        )
    return words


def _is_unambiguous(group: str, groups: Sequence[str], chosen: Sequence[Options]) -> bool:
    """Whether the options of a group are understood without its name: none of them is idle or another group's.

    An algorithm's always are, since it has all the parts that bear its name.
    """
    if group == "algorithm":
        return True
    values = {run_options.get(group) for run_options in chosen} - {None}
    other_values = {run_options.get(name) for run_options in chosen for name in groups if name != group}
    return not values & {*other_values, *IDLE_OPTIONS}


def _key_words(peers: Sequence[Run]) -> list[list[str]]:
    """The differing keys of methods that have the same options; the last word of a key where it is unambiguous."""
    keys = differing_keys(peers)
    last = [key.rpartition(".")[2] for key in keys]
    short = {key: name if last.count(name) == 1 else key for key, name in zip(keys, last, strict=True)}
    return [[f"{short[key]}={short_text(settings(run).get(key))}" for key in keys] for run in peers]


def _differs(key: str, configs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether not all have the same value; that some have no own module follows from their options."""
    having = [config for config in configs if key in config] if key.startswith(CODE) else configs
    return len({freeze(config.get(key)) for config in having}) > 1


def _number_duplicate(name: str, earlier: Sequence[str]) -> str:
    return f"{name} ({earlier.count(name) + 1})" if name in earlier else name


def freeze(value: Any) -> Any:
    """A config value as one that can be a key."""
    if isinstance(value, Mapping):
        return frozenset((key, freeze(entry)) for key, entry in value.items())
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value
