"""Rounds after which all models are what they were before: nothing arrived, or a rule left the model as it is.

The digests of a round and of the one before are the same then. Where there are none, as before the first round and in
old folders, the table of the run tells the usual reasons.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedexp.files import run_tables
from fedexp.files.run_tables import Line, numbers
from fedexp.report.read.runs import Run

if TYPE_CHECKING:
    import pandas as pd

DIGESTS, COLUMNS = "digests.csv", ("round", "digest")
_RULES = ("pre_aggregation", "aggregator")


def skipped_rounds(metrics: "pd.DataFrame", digests: Iterable[Line]) -> list[int]:
    """The numbers of these rounds, from metrics.csv and the lines of digests.csv."""
    by_round = {int(line["round"]): line["digest"] for line in digests}
    idle = np.any([*reasons(metrics).values()], axis=0)
    numbers = metrics["round"].to_numpy(dtype=np.int64).tolist()
    return [
        number
        for number, is_idle in zip(numbers, idle.tolist(), strict=True)
        if (by_round[number] == by_round[number - 1] if {number, number - 1} <= by_round.keys() else is_idle)
    ]


def reasons(metrics: "pd.DataFrame") -> Mapping[str, np.ndarray]:
    """In which rounds a model stays for which reason, bool `[rounds]` each, as far as the table tells."""
    participants = numbers(metrics, "participants")
    lost = np.nan_to_num(numbers(metrics, "fleet.late")) + np.nan_to_num(numbers(metrics, "fleet.dropped_out"))
    dropped = np.nan_to_num(numbers(metrics, "aggregator.dropped"))
    refused = [
        (numbers(metrics, f"{rule}.violated") == 1) & np.isnan(numbers(metrics, f"{rule}.byzantine")) for rule in _RULES
    ]
    nothing = participants <= lost
    return {
        "no update arrived": nothing,
        "no update was finite": ~nothing & (participants <= lost + dropped),
        "too few updates for a rule": np.any(refused, axis=0),
    }


def of_run(run: Run) -> list[int]:
    """The skipped rounds of a run; none where every client trains alone, and no model is anybody else's."""
    if run.config.get("scenario.training") == "local":
        return []
    return skipped_rounds(run.metrics, read_digests(run.folder))


def read_digests(folder: Path) -> Iterable[Line]:
    """The lines of digests.csv; none in an old folder."""
    return run_tables.read_lines(folder / DIGESTS, COLUMNS)


def reason_text(run: Run, rounds: Iterable[int]) -> str:
    """Why these rounds were skipped, with the number of rounds of each reason that the table tells."""
    chosen = np.isin(run.rounds, [*rounds])
    counts = {reason: int((chosen & is_so).sum()) for reason, is_so in reasons(run.metrics).items()}
    return ", ".join(f"{reason} in {count}" for reason, count in counts.items() if count)
