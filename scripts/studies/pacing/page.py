"""Makes README.md of this folder from mnist.csv, cifar10.csv and their trials.

python scripts/studies/pacing/page.py
"""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import fleets
import numpy as np
import yaml

from fedexp.compare.statistics import interval
from fedexp.report.draw.markdown import Grid

HERE = Path(__file__).parent
SLOWEST = 30  # clients that are called slow, and as many fast
FIRST = "synchronous"  # which the others are compared with
HEAD = ("fleet", "method", "seed", "words")
NUMBERS = ("accuracy", "slow", "fast", "share_of_slow", "uploads", "steps", "megabytes")
TIMES = ("seconds_1", "megabytes_1", "seconds_2", "megabytes_2")  # to the first and to the second target
COLUMNS = (*HEAD, *NUMBERS, *TIMES)
TRIAL_COLUMNS = ("fleet", "method", "trial", "words", "validation_accuracy")
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}


def times_as_fast(fleet: str) -> str:
    """How many times the mean speed of the slowest tenth of a fleet is that of the fastest, in words."""
    speeds = np.sort(fleets.speeds(fleet)).reshape(10, -1).mean(axis=1)
    return f"{speeds[-1] / speeds[0]:.2g} times"


FLEETS = {
    "even": "All clients are equally fast",
    "mixed": "Speeds differ (log-normal, sigma 0.5): on average the fastest tenth is "
    f"{times_as_fast('mixed')} as fast as the slowest",
    "harsh": f"Speeds differ much (sigma 1): {times_as_fast('harsh')}",
    "tied": "As harsh, and speed follows classes: who holds class 0 is fast, who holds class 9 is slow",
}


@dataclass(frozen=True)
class Setting:
    """How much a data set's study runs: trials of each method, last seeds, and the two accuracies that are timed."""

    trials: int
    seeds: int
    targets: tuple[float, float]


SETTINGS = {"mnist": Setting(8, 8, (0.8, 0.9)), "cifar10": Setting(4, 5, (0.3, 0.4))}
Lines = Mapping[str, Sequence[Mapping[str, str]]]  # of a fleet, by method

TEXT = f"""# Pacing: who waits for whom

Synchronous, deadline-bound, periodic and asynchronous methods, and one that asks more clients than it waits for, on the
same fleets and splits, with the same simulated time: three hours, 10 of 100 clients at a time, three classes a client.
Each method has its rate and at most one key of its own ([methods.yaml](methods.yaml)) chosen by `fedexp contest`: as
many trials for each, on validation data and on a seed of their own. Then it runs on seeds that no search has seen.
Speeds are those of [traces](fleets.py), the same for all seeds; times are simulated.

* *Accuracy* is the mean of the looks at the test data in the last tenth of the time, with Student's 95 % interval.
* *Slow* and *fast* are the last model's test accuracy weighted by the classes that the {SLOWEST} slowest and the
  {SLOWEST} fastest clients hold; *their share* is that of the slow ones among all uploads.
* *Seconds* and *MB* are those until a look first shows the target, with the interval over seeds; `5 of 8` says how many
  got there, and there is no mean unless all did. *By synchronous* is the geometric mean of the ratios of seconds to the
  first target, pairs by seed, for those in which both got there; `2 of 5` behind it says how many these are.

    python scripts/studies/pacing/study.py mnist     # runs what is missing; so after a kill
    python scripts/studies/pacing/study.py cifar10
    python scripts/studies/pacing/page.py            # this page again, without a run

Of the looks at the test data the first one in each simulated minute counts for a target, so that a method with many
small steps is not looked at more often. CIFAR-10 is looked at every other minute. There each method has four trials,
few for a rate and a key of its own: where the best of them is poor, a line may say more of the search than of the
method.
"""


def read(path: Path) -> dict[str, dict[str, list[dict[str, str]]]]:
    """The lines of a table by fleet and method; nothing where there is no table."""
    found: dict[str, dict[str, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    if path.is_file():
        with path.open(newline="") as file:
            for line in csv.DictReader(file):
                found[line["fleet"]][line["method"]].append(line)
    return found


def numbers(lines: Sequence[Mapping[str, str]], column: str) -> list[float]:
    """The values of a column that exist."""
    return [float(line[column]) for line in lines if line[column]]


def mean(values: Sequence[float], digits: str) -> str:
    """The mean with its 95 % interval, or a dash."""
    if not values:
        return "-"
    low, high = interval(np.array(values))
    told = f"{np.mean(values):{digits}}"
    return told if low is None else f"{told} ({low:{digits}} to {high:{digits}})"


def reached(lines: Sequence[Mapping[str, str]], column: str) -> str:
    """The mean of what it took, or how many got there."""
    values = numbers(lines, column)
    return mean(values, ",.0f") if len(values) == len(lines) else f"{len(values)} of {len(lines)}"


def ratio(lines: Sequence[Mapping[str, str]], first: Sequence[Mapping[str, str]]) -> str:
    """The geometric mean of the ratios of the seconds to the first target, with its interval, pairs by seed."""
    seconds = {line["seed"]: float(line["seconds_1"]) for line in first if line["seconds_1"]}
    both = [line for line in lines if line["seconds_1"] and line["seed"] in seconds]
    logs = np.array([np.log(float(line["seconds_1"]) / seconds[line["seed"]]) for line in both])
    if not len(logs):
        return "-"
    low, high = interval(logs)
    spread = "" if low is None or high is None else f"{np.exp(low):.2f} to {np.exp(high):.2f}"
    pairs = "" if len(both) == len(lines) else f"{len(both)} of {len(lines)}"
    told = ", ".join(filter(None, (spread, pairs)))
    return f"{np.exp(logs.mean()):.2f}" + (f" ({told})" if told else "")


def results(fleet: Lines, targets: Sequence[float]) -> Grid:
    """A row for each method."""
    heads = ["method", "seeds", "accuracy", "slow", "fast", "their share"]
    for target in targets:
        heads += [f"s to {target:g}", f"MB to {target:g}"]
    rows = []
    for method, lines in fleet.items():
        cells = [mean(numbers(lines, "accuracy"), ".3f")]
        cells += [mean(numbers(lines, column), ".3f") for column in ("slow", "fast")]
        share = numbers(lines, "share_of_slow")
        cells.append(f"{np.mean(share):.3f}" if share else "-")
        cells += [reached(lines, column) for column in TIMES]
        rows.append([method, str(len(lines)), *cells, ratio(lines, fleet.get(FIRST, ()))])
    return Grid([*heads, "by synchronous"], rows)


def tuning(trials: Lines) -> Grid:
    """What the search chose for each method, and how much it mattered: validation accuracy over the trials."""
    rows = []
    for method, lines in trials.items():
        values = sorted(numbers(lines, "validation_accuracy"), reverse=True)
        best = max(lines, key=lambda line: float(line["validation_accuracy"] or -1))
        spread = (
            [f"{value:.3f}" for value in (values[0], float(np.median(values)), values[-1])] if values else ["-"] * 3
        )
        rows.append([method, best["words"], str(len(lines)), str(len(lines) - len(values)), *spread])
    return Grid(["method", "chosen", "trials", "failed", "best", "median", "worst"], rows, 2)


def section(dataset: str, folder: Path) -> str:
    """The part of the page about a data set."""
    found, trials = read(folder / f"{dataset}.csv"), read(folder / f"{dataset}_trials.csv")
    setting = SETTINGS[dataset]
    parts = [f"## {TITLES[dataset]}"]
    methods = len(yaml.safe_load((HERE / "methods.yaml").read_text()))
    count = len(FLEETS) * methods * (setting.trials + setting.seeds)
    done = sum(len(lines) for table in (found, trials) for of_fleet in table.values() for lines in of_fleet.values())
    if done < count:
        state = f"So far {done} of {count} runs, trials included" if done else f"Not run yet: {count} runs"
        parts.append(f"{state}, of {len(FLEETS)} fleets and {methods} methods.")
    for fleet, told in FLEETS.items():
        if fleet in found:
            parts += [f"### {told}", results(found[fleet], setting.targets).markdown().strip()]
        if fleet in trials:
            parts.append(tuning(trials[fleet]).markdown().strip())
    return "\n\n".join(parts)


def text(folder: Path) -> str:
    """The page of the results in a folder."""
    return "\n".join([TEXT, *(f"{section(dataset, folder)}\n" for dataset in SETTINGS)])


def write(folder: Path) -> None:
    """Writes the page."""
    (folder / "README.md").write_text(text(folder))


if __name__ == "__main__":
    write(HERE)
