"""The strength at which an attack hurts a rule most, on validation data: writes strengths.csv beside this file.

    fedexp run -m experiment=robustness dataset=digits partition=dirichlet evaluation.test=false seed=100,101,102 \
        scenario.clients=20 scenario.participants=20 scenario.malicious=4 hydra.sweep.dir=outputs/strengths/sign_flip \
        attack=sign_flip attack.scale=0.3,1,3,10,30     # the same with each attack of KEYS, in a folder of its name
    python scripts/studies/aggregation_thesis/strengths.py outputs/strengths

`worst` chooses, for a rule and an attack, the strength with the lowest mean of the last validation accuracy over the
seeds, which no cell of the table has.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from fedexp.config import saved_config

FILE = Path(__file__).parent / "strengths.csv"
KEYS = {"sign_flip": "scale", "gaussian": "std", "alie": "z", "ipm": "epsilon", "same_value": "value"}
COLUMNS = ("aggregator", "attack", "strength", "seed", "validation_accuracy")


def main(folder: Path) -> None:
    """Reads the runs of all sweeps."""
    lines = sorted(line for attack in KEYS for line in of_attack(folder / attack, attack))
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(lines)


def of_attack(folder: Path, attack: str) -> list[tuple[str, str, float, int, str]]:
    """A line for each run of a sweep."""
    found = []
    for metrics in folder.glob("*/metrics.csv"):
        words = dict(word.split("=", 1) for word in saved_config.read(metrics.parent).overrides)
        with metrics.open(newline="") as table:
            seen = [line["validation_accuracy"] for line in csv.DictReader(table) if line["validation_accuracy"]]
        strength = float(words[f"attack.{KEYS[attack]}"])
        found.append((words["aggregator"], attack, strength, int(words["seed"]), f"{float(seen[-1]):.4f}"))
    return found


def worst() -> dict[tuple[str, str], float]:
    """The strength that hurts most, by rule and attack; of equals the smallest."""
    groups: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    with FILE.open(newline="") as file:
        for line in csv.DictReader(file):
            key = line["aggregator"], line["attack"], float(line["strength"])
            groups[key].append(float(line["validation_accuracy"]))
    chosen: dict[tuple[str, str], tuple[float, float]] = {}
    for (rule, attack, strength), values in sorted(groups.items()):
        mean = fmean(values)
        if (rule, attack) not in chosen or mean < chosen[rule, attack][0]:
            chosen[rule, attack] = mean, strength
    return {key: strength for key, (_, strength) in chosen.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
