"""One trial: the same hyperparameters with every seed, scored by the last validation accuracy, without test data."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedexp.core import csv_table, logs
from fedexp.core.errors import ConfigError, RunError
from fedexp.core.files import write_atomically
from fedexp.maths.metrics import final
from fedexp.run.run import complete
from fedexp.search.study import MethodTrials
from fedexp.simulation.round import Row
from fedexp.sweep.worker import TRACEBACK

BLIND = ("evaluation.test=false", "evaluation.validation=true", "pictures=false")
ACCURACY = "validation_accuracy"


class CutOffError(Exception):
    """The trial is too poor to be continued."""


def execute(study: MethodTrials, trial: Any, configs: list[dict[str, Any]]) -> None:
    """Runs or resumes the trial's runs, one for each seed, and reports to the study how they ended.

    The first seed's curve decides whether the trial is stopped early. If a run fails, for instance because the learning
    rate is too large, the trial fails; it still counts.
    """
    states = study.optuna.trial.TrialState
    place = study.place(trial.number)
    study.study.pruner = study.pruner(configs[0]["rounds"])
    try:
        scores = [
            score(config, place / f"seed={config['seed']}", _watch(trial) if first else None)
            for first, config in zip([True, *[False] * len(configs)], configs, strict=False)
        ]
    except CutOffError:
        study.study.tell(trial, state=states.PRUNED)
    except (ConfigError, RunError):
        write_atomically(place / TRACEBACK, traceback.format_exc().encode())
        study.study.tell(trial, state=states.FAIL)
    else:
        study.study.tell(trial, sum(scores) / len(scores))


def score(config: dict[str, Any], folder: Path, watch: Callable[[Row], None] | None) -> float:
    """Takes a run to its end; returns its last validation accuracy.

    Raises:
        RunError: there is none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with logs.kept():
        logs.log_to(folder, console=False)
        complete(config, folder, watch)
    accuracy = final(csv_table.frame(folder / "metrics.csv", (ACCURACY,))[ACCURACY])
    if accuracy is None:
        raise RunError("no round has a validation accuracy")
    return accuracy


def _watch(trial: Any) -> Callable[[Row], None]:
    def look(row: Row) -> None:
        accuracy = row.get(ACCURACY)
        if accuracy is None or accuracy != accuracy:
            return
        trial.report(accuracy, row["round"])
        if trial.should_prune():
            raise CutOffError

    return look
