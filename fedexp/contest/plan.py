"""The plan of a contest: what was asked, whether it is fair, and how it is kept in `contest.yaml`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from fedexp.compare import equality
from fedexp.config import saved_config
from fedexp.config.option_names import option_names
from fedexp.config.resolvers import words_with_environment
from fedexp.config.trust import Trust
from fedexp.contest.methods import Contender, refuse_wrong
from fedexp.core.errors import ConfigError
from fedexp.core.nested import flatten_keys
from fedexp.files.atomic import display_path
from fedexp.files.untrusted_yaml import read_yaml
from fedexp.maths.curve_metrics import is_metric_name
from fedexp.search.search import Search
from fedexp.simulation.setup.experiment import Experiment
from fedexp.sweep import saved_overrides

NAME = "contest.yaml"
_MOST = 100_000  # trials, seeds or looks that a file may ask for
_USUAL_SEEDS = 8  # so that contests that were begun before seeds could be added are found again
_HELD_OUT = (  # by evaluation
    *("validation_fraction", "validation_at", "personal_fraction", "personal_split", "own_test", "unseen_fraction"),
)
_SHARED = {*equality.BUDGET, *equality.DATA, "stop", *(f"evaluation.{name}" for name in _HELD_OUT)}
_SHARED_GROUPS = (*(f"{name}." for name in equality.DATA), "stop.")


@dataclass(frozen=True, kw_only=True)
class ContestPlan:
    """Methods, shared words, the trials of each method and the seed of their draws, and how many new seeds decide.

    `looked` are the numbers of seeds with which there was a page before more of them were asked for.
    """

    methods: tuple[Contender, ...]
    words: tuple[str, ...]
    trials: int
    seeds: int
    seed: int = 0
    metric: str = "accuracy"
    config_dir: str | None = None
    looked: tuple[int, ...] = ()

    def search(self, method: Contender) -> Search:
        """The search of one method. No trial is cut off: the spread over trials is that of whole runs."""
        budget = {"trials": self.trials, "seed": self.seed, "pruning": False, "metric": self.metric}
        return Search(words=(*self.words, *method.words), config_dir=self.config_dir, **budget)

    def text(self) -> str:
        """The plan as YAML."""
        content = {key: value for key, value in asdict(self).items() if value or key != "looked"}
        return saved_config.as_text(OmegaConf.create(content))

    @property
    def identity(self) -> str:
        """What makes it this contest and no other: all but the number of seeds."""
        return replace(self, seeds=_USUAL_SEEDS, looked=()).text()

    def with_seeds(self, seeds: int, *, looked: bool) -> "ContestPlan":
        """The plan with more seeds; `looked` says whether there was a page with those of before."""
        if seeds == self.seeds:
            return self
        return replace(self, seeds=seeds, looked=(*self.looked, self.seeds) if looked else self.looked)

    def check(self) -> tuple["ContestPlan", list[Experiment]]:
        """Refuses what cannot work or is not fair.

        Returns the plan with the main metric and the values of environment variables, and each method's experiment.

        Raises:
            ConfigError: names the method, or the setting in which methods that are compared must agree.
        """
        pairs = [self._shared_settings(method) for method in self.methods]
        first, *rivals = [settings for settings, _ in pairs]
        for method, settings in zip(self.methods[1:], rivals, strict=True):
            for key in [key for key in (*first, *settings) if first.get(key) != settings.get(key)]:
                raise ConfigError(
                    f"all methods of a contest must have the same {key}, got {first.get(key)} for "
                    f"{self.methods[0].name} and {settings.get(key)} for {method.name}"
                )
        methods = tuple(Contender(method.name, _with_environment(method.words)) for method in self.methods)
        plan = replace(self, methods=methods, words=_with_environment(self.words), metric=first["main metric"])
        return plan, [exp for _, exp in pairs]

    def _shared_settings(self, method: Contender) -> tuple[dict[str, Any], Experiment]:
        """The seeds, the main metric, and the settings of data, split and budget; and the experiment."""
        search = self.search(method)
        try:
            space, valid_run = search.space, search.validate()
        except ConfigError as error:
            raise ConfigError(f"{method.name}: {error}") from error
        keys = [dimension.key for dimension in space.dimensions if _is_shared(dimension.key)]
        for word in (*keys, *space.methods[0]):
            raise ConfigError(f"{method.name}: {word.partition('=')[0]} must have one value; it is not tuned here")
        exp, evaluation = valid_run.exp, valid_run.exp.evaluation
        if evaluation.validates_at_clients and not evaluation.personal:
            raise ConfigError(
                f"{method.name}: evaluation.validation_at=clients chooses by the models that clients use, so these "
                "must be compared in the end, too, but nothing is held out for it; set evaluation.personal_fraction=0.2"
            )
        options = option_names(valid_run.config, {})  # before the classes of these parts, which users do not know
        settings = {**options, **flatten_keys(valid_run.config)}
        shared = {key: value for key, value in settings.items() if _is_shared(key)}
        return {"seed": " ".join(space.seeds), "main metric": exp.metrics[0], **shared}, exp


def earlier_plan(plan: ContestPlan, folder: Path) -> ContestPlan | None:
    """The plan that a folder holds; None if it is that of another contest.

    Raises:
        ConfigError: it cannot be read.
    """
    earlier = _read(folder / NAME)
    return earlier if earlier.identity == plan.identity else None


def load(folder: Path, trust: Trust) -> ContestPlan:
    """Reads the plan from the folder of a contest, to go on with it.

    Raises:
        ConfigError: it cannot be read, or its words would change Hydra itself or take options from elsewhere.
    """
    path = folder / NAME
    plan = _read(path)
    methods = plan.methods
    refuse_wrong(methods)
    saved_overrides.refuse_hydra([*plan.words, *(word for method in methods for word in method.words)], path)
    options_folder = trust.options(Path(plan.config_dir) if plan.config_dir else None, folder)
    return replace(plan, config_dir=str(options_folder.absolute()) if options_folder else None)


def _read(path: Path) -> ContestPlan:
    content = read_yaml(path)
    try:
        methods = tuple(Contender(entry["name"], tuple(entry["words"])) for entry in content["methods"])
        tuples = {"methods": methods, "words": tuple(content["words"]), "looked": tuple(content.get("looked", ()))}
        plan = ContestPlan(**{**content, **tuples})
        counts = (plan.trials, plan.seeds, *plan.looked)
        are_counts = all(type(count) is int and 0 < count <= _MOST for count in counts)
        if not is_metric_name(plan.metric) or not are_counts or type(plan.seed) is not int or plan.seed < 0:
            raise ValueError
        if not all(isinstance(text, str) for text in (plan.config_dir or "", *(method.name for method in methods))):
            raise TypeError
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{display_path(path)} must hold the plan of a contest; is it damaged?") from error
    return plan


def _is_shared(key: str) -> bool:
    return key in _SHARED or key.startswith(_SHARED_GROUPS)


def _with_environment(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(words_with_environment(words))
