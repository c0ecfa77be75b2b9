"""Runs a search to its end: trials of the methods in turn, then the table of the best.

Several processes may work on one folder at once, here or on machines that share it: each takes the next trial.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from fedexp.config import saved_config
from fedexp.config.compose import Composer, Request, make_composer, resolve_config
from fedexp.config.location import conf_dir
from fedexp.config.resolvers import words_with_environment
from fedexp.config.trust import Trust
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path, write_atomically
from fedexp.files.open_folders import open_folder
from fedexp.files.untrusted_yaml import read_yaml
from fedexp.maths.curve_metrics import is_metric_name
from fedexp.process import logs
from fedexp.process.exits import resumable
from fedexp.process.terminal import print_text
from fedexp.run import addresses, change_tracker
from fedexp.run.validate import ValidRun
from fedexp.search import space, table
from fedexp.search.study import JOURNAL, Budget, MethodTrials
from fedexp.search.trial import VALIDATION_ONLY, execute
from fedexp.sweep import saved_overrides
from fedexp.sweep.launchers.joblib import parallel
from fedexp.sweep.points import Point, compose, compose_point, validate_point
from fedexp.sweep.run_point import shared_cores

NAME = "search.yaml"


@dataclass(frozen=True, kw_only=True)
class Search(Budget):
    """The settings of a search: its overrides, and the budget of every method."""

    words: tuple[str, ...]
    config_dir: str | None = None

    @cached_property
    def space(self) -> space.Space:
        """The overrides, sorted into fixed, listed and searched ones."""
        return space.read(self.words)

    def composer(self, *, typed: bool) -> tuple[Composer, Any]:
        """The composer, and the config that trials start from; `typed` if the user gave the words now, not a folder."""
        options_folder = Path(self.config_dir) if self.config_dir else None
        request = Request(conf_dir(), list(self.space.fixed), config_dir=options_folder, typed=typed)
        composer = make_composer(request)
        return composer, compose(composer, request)

    def validate(self) -> ValidRun:
        """The first method's run at the first values, after trying every method at all extremes.

        Raises:
            ConfigError: one of them cannot work, or the methods differ in their main metric or on what it is measured.
        """
        try:
            return self._validate(*self.composer(typed=True))
        finally:
            GlobalHydra.instance().clear()

    def _validate(self, composer: Composer, config: Any) -> ValidRun:
        self.space.refuse_useless()
        metrics, validation_holders = {}, set()
        for number, (method, values) in enumerate(product(self.space.methods, self.space.extreme_overrides())):
            words = [*method, *values, self.space.seeds[0]]  # of the same keys: then most are composed by a copy
            _, valid_run = validate_point(composer, config, self.point(number, words))
            metrics.setdefault(valid_run.exp.metrics[0], valid_run)
            validation_holders.add(valid_run.exp.evaluation.validation_at)
        if len(metrics) > 1:
            raise ConfigError(
                f"a search must have one main metric for all trials, got {', '.join(metrics)}; set evaluation.metrics"
            )
        if len(validation_holders) > 1:
            raise ConfigError("a search must have one evaluation.validation_at for all trials, got clients and null")
        return next(iter(metrics.values()))

    def point(self, number: int, overrides: Sequence[str]) -> Point:
        """The sweep point of one run of a trial, without test data."""
        return Point(number, [*self.space.fixed, *overrides, *VALIDATION_ONLY])


def save(search: Search, folder: Path) -> None:
    """Writes the settings of a search into its folder."""
    content = {**asdict(search), "words": words_with_environment(search.words)}
    write_atomically(folder / NAME, saved_config.as_text(OmegaConf.create(content)).encode())


def load(folder: Path, trust: Trust) -> Search:
    """Reads the settings of a search from its folder.

    Raises:
        ConfigError: the file cannot be read, or its words would change Hydra itself or take options from elsewhere.
    """
    path = folder / NAME
    content = read_yaml(path)
    kinds = {"metric": str, "words": list, "trials": int, "seed": int, "pruning": bool, "config_dir": str | None}
    for name, kind in kinds.items():
        if not isinstance(content.get(name), kind):
            raise ConfigError(
                f"{display_path(path)}: {name} must be what was asked of a search, got {content.get(name)!r}"
            )
    if not trust.composed:
        saved_overrides.refuse_hydra(content["words"], path)
    options_folder = trust.options(Path(content["config_dir"]) if content["config_dir"] else None, folder)
    if not is_metric_name(content["metric"]):
        raise ConfigError(
            f"{display_path(path)}: metric must be what a search is judged by, got {content['metric']!r}; is it "
            "damaged?"
        )
    settings = {name: content[name] for name in ("trials", "seed", "pruning", "metric")}
    config_dir = str(options_folder.absolute()) if options_folder else None
    return Search(words=tuple(content["words"]), config_dir=config_dir, **settings)


def run_search(folder: Path, jobs: int, trust: Trust, tracker: dict[str, Any] | None = None) -> str:
    """Works on the search with `jobs` processes until no trial is left; returns the table.

    Trials that are still to come get the `tracker`, if one is given.
    """
    search = load(folder, trust)
    saved_config.refuse_changed_below(folder, trust)
    with resumable(folder), open_folder(folder):
        if jobs == 1:
            run_trials(folder, None, trust, tracker)
        else:
            from joblib import delayed

            parallel(jobs)(delayed(run_trials)(folder.absolute(), 1, trust, tracker) for _ in range(jobs))
        studies = open_studies(search, folder)
        flags = () if search.config_dir is None else ("--config-dir", search.config_dir)
        return table.write_results(folder, search.space, studies, flags)


def open_studies(search: Search, folder: Path) -> list[MethodTrials]:
    """The trials of every method in the folder of a search.

    Raises:
        ConfigError: one of them was not drawn from the space of this search.
    """
    studies = [MethodTrials(folder, method, search) for method in search.space.methods]
    for study in studies:
        for trial in study.trials():
            if key := search.space.foreign_key(trial):
                raise ConfigError(
                    f"trials must be drawn from the space of {display_path(folder / NAME)}, but {key} of trial "
                    f"{trial.number} of {study.name} was not; restore {JOURNAL} and {NAME}, or search in another folder"
                )
    return studies


def describe(folder: Path, trust: Trust) -> dict[str, Any]:
    """A search for programs: every trial, and the best of each method."""
    search = load(folder, trust)
    studies = open_studies(search, folder)
    return {"folder": folder.absolute(), "metric": search.metric, **table.describe(search.space, studies)}


def run_trials(folder: Path, share: int | None, trust: Trust, tracker: dict[str, Any] | None = None) -> None:
    """Takes trial after trial, from the methods in turn, until none is left."""
    search = load(folder, trust)
    try:
        with open_folder(folder), shared_cores(share), logs.restore_logging():
            composer, config = search.composer(typed=False)
            addresses.refuse_unknown(_with_tracker(resolve_config(config), tracker), folder / "0" / "0", trust)
            studies = open_studies(search, folder)
            while studies:
                pairs = [(study, _run_next_trial(study, search, composer, config, trust, tracker)) for study in studies]
                studies = [study for study, has_more in pairs if has_more]
    finally:
        GlobalHydra.instance().clear()


def _with_tracker(config: dict[str, Any], tracker: dict[str, Any] | None) -> dict[str, Any]:
    """The config with the `tracker`, if one is given."""
    return config if tracker is None else {**config, "tracker": tracker}


def _run_next_trial(
    study: MethodTrials,
    search: Search,
    composer: Composer,
    config: Any,
    trust: Trust,
    tracker: dict[str, Any] | None,
) -> bool:
    """Works on one trial of a method; returns whether there was one."""
    with study.next_trial() as trial:
        if trial is None:
            return False
        params = [dimension.suggest(trial) for dimension in search.space.dimensions]
        configs = []
        for seed in search.space.seeds:
            run_config = compose_point(composer, config, search.point(trial.number, [*study.method, *params, seed]))
            resolved = resolve_config(run_config)
            configs.append(_with_tracker(resolved, tracker))
            trust.refuse_untrusted(configs[-1], study.root)
            run_folder = (study.trial_folder(trial.number) / seed).absolute()
            addresses.refuse_unknown(configs[-1], run_folder, trust)
            saved_config.save_once(run_folder, run_config, resolved)
            change_tracker.write_tracker(run_folder, tracker)
        execute(study, trial, configs)
        line = [*study.method, f"#{trial.number}: {table.outcome(study, trial.number)} ", *params]
        print_text(" ".join(line) + "\n")
        return True
