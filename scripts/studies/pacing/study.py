"""Runs the study, a contest on each fleet, and collects its results; whatever was killed goes on.

    python scripts/studies/pacing/study.py mnist                  # all fleets; --jobs 2: two processes at once
    python scripts/studies/pacing/study.py cifar10 harsh tied     # two of them
    python scripts/studies/pacing/study.py mnist --collect        # only what is finished, without a run

Run folders lie in outputs/pacing/DATASET/FLEET; MNIST and CIFAR-10 get `DATASET.csv`, a line a run, and
`DATASET_trials.csv`, a line a trial, beside this file, and README.md is made from them (page.py).
"""

import argparse
import csv
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import fleets
import numpy as np
import page
from page import COLUMNS, SETTINGS, SLOWEST, TRIAL_COLUMNS

from fedexp.config import saved_config
from fedexp.config.trust import Trust
from fedexp.contest.contest import NAME
from fedexp.contest.plan import ContestPlan, load
from fedexp.files import run_tables
from fedexp.maths.curve_metrics import time_to
from fedexp.report.read import runs
from fedexp.report.read.runs import Run
from fedexp.search.study import MethodTrials

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
OUTPUTS = Path("outputs", "pacing")
SEARCH_SEED = 100  # the last runs have the seeds after it
RATE = "local.lr=tag(log,interval(0.003,0.3))"
TUNED = (
    *("local.lr=", "server_optimizer.lr=", "fleet.deadline_s="),
    *("pacing.uploads=", "pacing.period_s=", "pacing.mixing="),
)
LAST = 0.1  # of the simulated time, over which the accuracy at the end is averaged
LOOK_S = 60.0  # simulated seconds from one look that counts for a target to the next, at least


@dataclass(frozen=True)
class ClientGroups:
    """The numbers of the slowest and of the fastest clients; none where all are alike."""

    slow: np.ndarray
    fast: np.ndarray

    @staticmethod
    def of(fleet: str) -> "ClientGroups":
        speeds = fleets.speeds(fleet)
        order = np.argsort(speeds, kind="stable")
        count = SLOWEST if np.ptp(speeds) else 0
        return ClientGroups(order[:count], order[len(order) - count :])


def command(dataset: str, fleet: str, jobs: int) -> list[str]:
    """The contest of a fleet, as it would be typed in the folder of the repository."""
    setting = SETTINGS[dataset]
    folder = HERE.relative_to(ROOT)
    words = [f"experiment=pacing_{dataset}", f"fleet.trace={folder / fleet}.csv", f"seed={SEARCH_SEED}", RATE]
    budget = ["--trials", str(setting.trials), "--seeds", str(setting.seeds), "--jobs", str(jobs)]
    return ["contest", str(folder / "methods.yaml"), *words, *budget, "--out", str(OUTPUTS / dataset / fleet)]


def look_at_clients(folder: Path, clients: np.ndarray) -> float:
    """The test accuracy of the last model, weighted by the classes of the examples that these clients hold."""
    confusion = run_tables.read_frame(folder / "confusion_matrix.csv").to_numpy()[:, 1:].astype(float)
    held = run_tables.read_frame(folder / "federation.csv").to_numpy()[:, 2:].astype(float)[clients].sum(axis=0)
    recall = confusion.diagonal() / confusion.sum(axis=1)
    return float(recall @ held / held.sum())


def measure(run: Run, groups: ClientGroups, targets: Sequence[float]) -> list[str]:
    """The cells of a finished run behind fleet, method and seed; empty where there is none."""
    accuracy, seconds = run.column("test_accuracy"), run.column("sim_s")
    megabytes = np.cumsum(np.nan_to_num(run.column("mb_down")) + np.nan_to_num(run.column("mb_up")))
    late = np.nanmean(accuracy[seconds >= (1 - LAST) * seconds[-1]])
    uploads = run.selections.sum()
    cells = [f"{late:.4f}", *([""] * 3), f"{uploads}", f"{len(seconds)}", f"{megabytes[-1]:.6g}"]
    if len(groups.slow):
        shares = [look_at_clients(run.folder, clients) for clients in (groups.slow, groups.fast)]
        cells[1:4] = [*(f"{share:.4f}" for share in shares), f"{run.selections[groups.slow].sum() / uploads:.4f}"]
    counts = regular_looks(accuracy, seconds)
    for target in targets:
        reached = [time_to(accuracy[counts], axis[counts], target) for axis in (seconds, megabytes)]
        cells += ["" if value is None else f"{value:.6g}" for value in reached]
    return cells


def regular_looks(accuracy: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """The steps whose looks count for a target: the first of each minute, so that no method is looked at more often."""
    looked = np.flatnonzero(~np.isnan(accuracy))
    return looked[np.unique(seconds[looked] // LOOK_S, return_index=True)[1]]


def collect(dataset: str, fleet: str, folder: Path) -> Iterator[list[str]]:
    """A line for each finished run of a contest."""
    groups, setting = ClientGroups.of(fleet), SETTINGS[dataset]
    for method in contest_plan(folder).methods:
        for path in sorted((folder / "runs" / method.folder).glob("seed=*")):
            run = runs.read(path) if (path / "metrics.csv").exists() else None
            if run is not None and run.is_finished:
                tuned = " ".join(sorted(tuned_words(path)))
                yield [fleet, method.name, str(run.seed), tuned, *measure(run, groups, setting.targets)]


def tuned_words(folder: Path) -> list[str]:
    """The words of a run that the search chose."""
    return [word for word in saved_config.read(folder).overrides if word.startswith(TUNED)]


def collect_trials(fleet: str, folder: Path) -> Iterator[list[str]]:
    """A line for each trial of a contest's searches that is over; a failed one has no accuracy."""
    plan = contest_plan(folder)
    for method in plan.methods:
        searches = folder / "search" / method.folder
        if searches.is_dir():
            ended = [one for one in MethodTrials(searches, (), plan.search(method)).trials() if one.state.is_finished()]
            for trial in ended:
                words = " ".join(f"{key}={value:.4g}" for key, value in sorted(trial.params.items()))
                value = f"{trial.value:.4f}" if trial.state.name == "COMPLETE" else ""
                yield [fleet, method.name, str(trial.number), words, value]


def contest_plan(folder: Path) -> ContestPlan:
    """The plan of a contest that was begun from here."""
    return load(folder, Trust(composed=True))


def write(path: Path, head: Sequence[str], lines: Mapping[str, Sequence[Sequence[str]]]) -> None:
    """Writes a table of lines by fleet, in the order of the fleets; a fleet that is not among them keeps its lines."""
    earlier: dict[str, list[list[str]]] = defaultdict(list)
    if path.is_file():
        with path.open(newline="") as file:
            for line in [*csv.reader(file)][1:]:
                earlier[line[0]].append(line)
    table = [line for fleet in fleets.SIGMA for line in {**earlier, **lines}.get(fleet, ())]
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *table])


def main(words: Sequence[str]) -> int:
    """Runs what is missing of a data set's contests, and writes its tables and the page; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=sorted(SETTINGS))
    parser.add_argument("fleets", nargs="*", metavar="FLEET", help=f"of {', '.join(fleets.SIGMA)}; all by default")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--collect", action="store_true")
    arguments = parser.parse_args(words)
    if unknown := set(arguments.fleets) - set(fleets.SIGMA):
        parser.error(f"unknown fleet {', '.join(sorted(unknown))}; there are {', '.join(fleets.SIGMA)}")
    chosen = [] if arguments.collect else arguments.fleets or list(fleets.SIGMA)
    fedexp = [sys.executable, "-m", "fedexp"]
    codes = [
        subprocess.run([*fedexp, *command(arguments.dataset, fleet, arguments.jobs)], cwd=ROOT).returncode
        for fleet in chosen
    ]
    update_tables(arguments.dataset, HERE, ROOT / OUTPUTS / arguments.dataset)
    page.write(HERE)
    return int(any(codes))


def update_tables(dataset: str, tables: Path, outputs: Path) -> None:
    """Writes the tables of a data set anew; fleets that have no contest in `outputs` keep their lines."""
    folders = {fleet: outputs / fleet for fleet in fleets.SIGMA if (outputs / fleet / NAME).is_file()}
    results = {fleet: list(collect(dataset, fleet, folder)) for fleet, folder in folders.items()}
    trials = {fleet: list(collect_trials(fleet, folder)) for fleet, folder in folders.items()}
    write(tables / f"{dataset}.csv", COLUMNS, results)
    write(tables / f"{dataset}_trials.csv", TRIAL_COLUMNS, trials)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
