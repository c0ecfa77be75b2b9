"""The config and the experiment of one run, checked as far as possible without loading data."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from fedexp.config import trust
from fedexp.config.bundles import name_setters, refuse_replaced_parts
from fedexp.config.compose import Composer, resolve_config
from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.core.nested import walk
from fedexp.files.summary_bounds import Bound
from fedexp.maths.curve_metrics import HIGHER_IS_BETTER, metric_name

if TYPE_CHECKING:
    from fedexp.simulation.setup.experiment import Experiment


@dataclass(frozen=True)
class ValidRun:
    """A run that can begin: its plain config, and the experiment built from it."""

    config: dict[str, Any]
    exp: "Experiment"


def validate_config(composer: Composer, config: DictConfig, overrides: Sequence[str]) -> ValidRun:
    """Resolves and builds the config of one run, with every refusal that is possible without loading data.

    Raises:
        ConfigError: a key is missing or has a wrong value, parts cannot work together, or files are absent.
    """
    HydraConfig.instance().set_config(deepcopy(config))  # it freezes what it is given
    name = config.hydra.job.config_name
    refuse_replaced_parts(config)
    with composer.explain_errors(name, overrides):
        run_config = resolve_config(config)
    for key, value in walk(run_config):
        if value == "???":
            raise ConfigError(f"{key} must be given; set {key}=...")
    from fedexp.simulation.build_world import build_experiment  # it brings PyTorch; no mistyped word need wait for it

    with name_setters(config, overrides):
        run = ValidRun(run_config, build_experiment(run_config))
    trust.remember_modules(run_config)
    return run


def refuse_bounds(bounds: Sequence[Bound], metric_lists: Iterable[Sequence[str] | None]) -> None:
    """Refuses bounds of --fail-if on metrics that no run measures.

    `metric_lists` are the runs' `evaluation.metrics`; None stands for what suits the loss.

    Raises:
        ConfigError: no run can have such a number.
    """
    entries = {entry for metrics in metric_lists for entry in metrics or HIGHER_IS_BETTER}
    metrics = ["loss", *sorted(map(metric_name, entries))]
    for bound in bounds:
        if bound.metric and not any(f"_{bound.metric}".endswith(f"_{metric}") for metric in metrics):
            hint = did_you_mean(bound.name, [bound.name.replace(bound.metric, metric) for metric in metrics])
            raise ConfigError(f"--fail-if must bound a metric that is measured, got {bound.name}; {hint}")
