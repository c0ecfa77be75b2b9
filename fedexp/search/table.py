"""The results of a search: `search.csv` with every trial, and a table with the best of each method."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedexp.files.atomic import display_path, write_atomically
from fedexp.maths.curve_metrics import higher_is_better
from fedexp.process.terminal import width
from fedexp.report.draw.markdown import Grid
from fedexp.search.space import Space
from fedexp.search.study import MethodTrials

_STATES = ("COMPLETE", "PRUNED", "FAIL", "RUNNING")


def write_results(folder: Path, space: Space, studies: list[MethodTrials], flags: tuple[str, ...] = ()) -> str:
    """Writes `search.csv`; returns the table of methods, and the command for the best of each with these flags."""
    import pandas as pd

    rows = [_row(study, trial) for study in studies for trial in study.trials()]
    write_atomically(folder / "search.csv", pd.DataFrame(rows).to_csv(index=False).encode())
    metric = studies[0].budget.metric
    head = ["method", "complete", "pruned", "failed", "running", f"validation {metric}", "best hyperparameters"]
    lines = [_line(study, space) for study in studies]
    text = Grid(head, lines, texts=1).fit_width(
        width(), f"see {display_path(folder / 'search.csv')}", Grid.aligned_text
    )
    rankable = [study for study in studies if best(study) is not None]
    if rankable:
        text += "\nOn seeds that the search has not seen, with a first look at the test data:\n"
        text += "".join(f"  {command(study, space, flags)}\n" for study in rankable)
    return text + f"search  {display_path(folder / 'search.csv')}\n"


def describe(space: Space, studies: Sequence[MethodTrials]) -> dict[str, Any]:
    """Every trial, and the hyperparameters and score of each method's best; null where no trial came to its end."""
    tops = [(study, best(study)) for study in studies]
    return {
        "best": [
            {
                "method": study.name,
                "trial": top and top.number,
                "value": top and top.value,
                "overrides": [] if top is None else [*study.method, *overrides(space, top)],
            }
            for study, top in tops
        ],
        "trials": [
            {
                "method": study.name,
                "trial": trial.number,
                "state": trial.state.name.lower(),
                "value": trial.value,
                "last_round": trial.last_step,
                "params": trial.params,
            }
            for study in studies
            for trial in study.trials()
        ],
    }


def best(study: MethodTrials) -> Any:
    """The complete trial with the best main metric, the earliest at ties; None if there is none."""
    sign = 1 if higher_is_better(study.budget.metric) else -1
    complete = [trial for trial in study.trials() if trial.state.name == "COMPLETE"]
    return max(complete, key=lambda trial: (sign * trial.value, -trial.number), default=None)


def outcome(study: MethodTrials, number: int) -> str:
    """How a trial ended: its score, the round in which it was pruned, or where its error is."""
    trial = study.trials()[number]
    if trial.state.name == "COMPLETE":
        return f"{trial.value:.4f}"
    if trial.state.name == "PRUNED":
        return f"cut off after round {trial.last_step}"
    return f"failed, see {display_path(study.trial_folder(number))}"


def overrides(space: Space, trial: Any) -> list[str]:
    """The hyperparameters of a trial as overrides of the command line."""
    return [dimension.suggest(trial) for dimension in space.dimensions]


def command(study: MethodTrials, space: Space, flags: tuple[str, ...] = ()) -> str:
    """The command that runs a method's best hyperparameters with new seeds."""
    last = max(int(seed.partition("=")[2]) for seed in space.seeds)
    seeds = ",".join(str(last + offset) for offset in (1, 2, 3))
    fixed = [word for word in space.fixed if not word.lstrip("+").startswith("tracker")]  # addresses are private
    if any(word.endswith("validation_at=clients") for word in fixed):  # else they would train on these, too
        fixed.append("evaluation.validation=true")
    words = [*flags, *fixed, *study.method, *overrides(space, best(study)), f"seed={seeds}"]
    return "fedexp run -m " + " ".join(shlex.quote(word) for word in words)


def _row(study: MethodTrials, trial: Any) -> dict[str, Any]:
    cells = {"method": study.name, "trial": trial.number, "state": trial.state.name.lower()}
    return {**cells, f"validation_{study.budget.metric}": trial.value, "last_round": trial.last_step, **trial.params}


def _line(study: MethodTrials, space: Space) -> list[str]:
    states = [trial.state.name for trial in study.trials()]
    top = best(study)
    best_cells = ["", ""] if top is None else [f"{top.value:.4f}", " ".join(overrides(space, top))]
    return [study.name, *(str(states.count(name)) for name in _STATES), *best_cells]
