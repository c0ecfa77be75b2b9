"""The selection thesis' learning curves on MNIST beside ours, with clients' examples in three orders.

    python scripts/studies/selection/curves.py              # curves.png from curves.csv
    python scripts/studies/selection/curves.py RUNS SOURCE  # curves.csv, too

RUNS is the folder of the runs of `fedexp replay selection_thesis --cells 'MNIST thesis*'`, SOURCE a folder with the
thesis' public files rand_mnist_150.csv, active_mnist_150.csv and greedy_mnist_150.csv (github.com/mayoras/flex-cs,
commit 7014c73, results/): each is one run of 150 rounds.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PUBLISHED = {"random": "rand_mnist_150.csv", "AFL": "active_mnist_150.csv", "GreedyFed": "greedy_mnist_150.csv"}
RUNS = {
    ("random", "shuffled"): "MNIST_thesis_random_unweighted_",
    ("AFL", "shuffled"): "MNIST_thesis_AFL_highest_of_the_last_epoch_",
    ("GreedyFed", "shuffled"): "MNIST_thesis_GreedyFed_in_order_",
    **{
        (selector, order): f"MNIST_thesis_{selector}_{order.replace(' ', '_')}_"
        for selector in PUBLISHED
        for order in ("class by class", "file order")
    },
}
COLORS = {"shuffled": "#0072B2", "class by class": "#D55E00", "file order": "#009E73"}
HEAD = ["selector", "order", "round", "accuracy", "lowest", "highest", "runs"]


def collect(runs: Path, source: Path) -> list[list[str]]:
    """The lines of curves.csv: a curve is the mean of its runs, with the lowest and highest of each round."""
    lines = []
    for selector, name in PUBLISHED.items():
        with (source / name).open(newline="") as file:
            accuracies = [float(row["accuracy"]) for row in csv.DictReader(file)]
        lines += [
            [selector, "published", number + 1, value, value, value, 1] for number, value in enumerate(accuracies)
        ]
    for (selector, order), prefix in RUNS.items():
        curves = []
        for path in sorted(runs.glob(f"{prefix}*/*/metrics.csv")):
            with path.open(newline="") as file:
                curves.append([float(row["test_accuracy"]) for row in csv.DictReader(file)])
        for number, values in enumerate(zip(*curves, strict=True)):
            told = (f"{value:.4f}" for value in (np.mean(values), min(values), max(values)))
            lines.append([selector, order, number + 1, *told, len(values)])
    return [[str(cell) for cell in line] for line in lines]


def draw(path: Path) -> None:
    """A panel a selector: the published curve, and ours with the range of the seeds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    curves: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    with (HERE / "curves.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            curves[row["selector"], row["order"]].append([float(row[name]) for name in HEAD[2:6]])
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    for axes, selector in zip(panels, PUBLISHED, strict=True):
        for order, color in COLORS.items():
            number, mean, low, high = np.array(curves[selector, order]).T
            axes.plot(number, mean, color=color, linewidth=1.2, label=f"ours, {order}")
            axes.fill_between(number, low, high, color=color, alpha=0.15, linewidth=0)
        number, value, *_ = np.array(curves[selector, "published"]).T
        axes.plot(number, value, color="black", linewidth=1, label="published, one run")
        axes.set(title=selector, xlabel="round", xscale="log", ylim=(0.5, 0.97))
    panels[0].set_ylabel("test accuracy")
    panels[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main(words: list[str]) -> None:
    """Collects, if folders are given, and draws."""
    if words:
        runs, source = map(Path, words)
        with (HERE / "curves.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEAD, *collect(runs, source)])
    draw(HERE / "curves.png")


if __name__ == "__main__":
    main(sys.argv[1:])
