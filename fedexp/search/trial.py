"""One trial: the same hyperparameters with every seed, scored by the last main metric on validation data alone."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from fedexp.core.errors import ConfigError, RunError
from fedexp.files import run_tables
from fedexp.files.atomic import write_atomically
from fedexp.files.failure import TRACEBACK
from fedexp.files.open_folders import make_folder
from fedexp.maths.curve_metrics import last, main_metric
from fedexp.process import logs
from fedexp.run.folders import is_finished
from fedexp.run.run import complete
from fedexp.run.state import checkpoint
from fedexp.search.study import MethodTrials
from fedexp.simulation.round import Row

VALIDATION_ONLY = ("evaluation.test=false", "evaluation.validation=true", "pictures=false")


class PrunedError(Exception):
    """The trial was pruned."""


def execute(study: MethodTrials, trial: Any, configs: list[dict[str, Any]]) -> None:
    """Runs or resumes the trial's runs, one for each seed, and reports to the study how they ended.

    The first seed's curve decides whether the trial is stopped early. If a run fails, for instance because the learning
    rate is too large, the trial fails; it still counts.
    """
    states = study.optuna.trial.TrialState
    folder = study.trial_folder(trial.number)
    study.study.pruner = study.pruner(configs[0])
    try:
        scores = [
            score(config, folder / f"seed={config['seed']}", _watch(study, trial) if first else None)
            for first, config in zip([True, *[False] * len(configs)], configs, strict=False)
        ]
    except PrunedError:
        study.study.tell(trial, state=states.PRUNED)
    except (ConfigError, RunError):
        write_atomically(folder / TRACEBACK, traceback.format_exc().encode())
        study.study.tell(trial, state=states.FAIL)
    else:
        study.study.tell(trial, sum(scores) / len(scores))


def score(config: dict[str, Any], folder: Path, watch: Callable[[Row], None] | None) -> float:
    """Runs or resumes a run to its end; returns the last round's main metric on the validation data.

    Raises:
        RunError: there is none, or an infinite one.
    """
    make_folder(folder)
    with logs.restore_logging():
        logs.log_to(folder, console=False)
        if watch is not None and not is_finished(folder):
            _watch_saved_round(config, folder, watch)
        complete(config, folder, watch)
    table = run_tables.read_frame(folder / "metrics.csv")
    metric = main_metric(table, "validation")
    value = last(table[f"validation_{metric}"]) if f"validation_{metric}" in table else None
    if value is None:
        raise RunError(f"the last round has no validation {metric}, or an infinite one")
    return value


def _watch_saved_round(config: dict[str, Any], folder: Path, watch: Callable[[Row], None]) -> None:
    """Watches the last saved round: the process may have been killed after it was saved, and before it was watched."""
    saved = checkpoint.load(folder, config, torch.device("cpu"))
    for line in run_tables.read_lines(folder / "metrics.csv", ("round",)) if saved else ():
        if saved and int(line["round"]) == saved.state.round:
            scores = {name: float(text) for name, text in line.items() if name.startswith("validation_") and text}
            watch({**dict.fromkeys(line), **scores, "round": saved.state.round})


def _watch(study: MethodTrials, trial: Any) -> Callable[[Row], None]:
    """Reports rounds to the trial, and asks whether it is pruned; both may have been done before the process died."""
    reported = {*study.trials()[trial.number].intermediate_values}

    def report_round(row: Row) -> None:
        value = row.get(f"validation_{main_metric(row, 'validation')}")
        if value is None or value != value or row["round"] < max(reported, default=0):
            return
        if row["round"] not in reported:
            trial.report(value, row["round"])
        if trial.should_prune():
            raise PrunedError

    return report_round
