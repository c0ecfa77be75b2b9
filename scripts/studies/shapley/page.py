"""Makes README.md and estimators.png of this folder from estimators.csv.

    python scripts/studies/shapley/page.py [FOLDER]

A table of rounds is a dataset and a number of participants, mnist_10 say. Every figure is over its rounds: the median
of the largest error, and a band from the 10 % to the 90 % quantile.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
TITLES = {"mnist": "MNIST, MLP", "cifar10": "CIFAR-10, SimpleCNN"}
TEXT = """# Shapley values of a round: how near, at what cost

Real rounds of GreedyFed whose exact values are known (all 2^M coalitions were evaluated), and what each estimator
makes of them with so many coalitions. The error of a round is the largest error of a client in % of the spread of the
exact values, in the mean of five seeds; the cost is in evaluations of a model on all validation examples.
`surrogate, part` evaluates three coalitions a participant on all of these and the others on a quarter. `default` is
what `selector.shapley.method=auto` takes from 7 participants: the same, stopped when its own standard error is at most
1 % of the spread, with at most 12 coalitions a participant. With 6 it stands for the surrogate on all examples; there
`auto` takes exact values. An estimator that ends by its own rule (`gtg`, the default before) may ask for fewer
coalitions than it is allowed.

At every number of participants and every cost the surrogate is the nearest by far. So fedexp has kept it, exact
values, and `gtg`, which published tables were made with. The five others are gone; their rows show why, and
`compare.py` makes them no more: permutations (uniformly random, antithetic pairs, Latin squares) and regressions on
pairs of coalitions (KernelSHAP's and leverage scores'). With 250 participants of a smooth synthetic game and 2,048
coalitions the largest error was 8 % of the spread by the surrogate and 120 to 150 % by the four of them that could be
held to so many, in runs that were not kept. Of more than 200 `auto` took leverage scores until then.

    python scripts/studies/shapley/compare.py record TABLES DATA_DIR mnist 6 8 10
    python scripts/studies/shapley/compare.py record TABLES DATA_DIR cifar10 6 8 10
    python scripts/studies/shapley/compare.py compare scripts/studies/shapley/estimators.csv TABLES/*.npz
    python scripts/studies/shapley/page.py

![error over cost](estimators.png)

Bands reach from the 10 % to the 90 % quantile of the rounds.

In the tables *90 %* is that quantile of the error over the rounds and *largest* the worst round. *Better half right* is
the share of the seeds in which the better half of the clients was that of the exact values, in the mean over rounds;
*intervals right* the share of the exact values within 1.96 of the estimator's own standard errors.
"""

Lines = dict[tuple[str, str], dict[int, list[dict[str, float]]]]  # by (table, method), by budget: one a round


def read(path: Path) -> Lines:
    """The lines of the study."""
    found: Lines = defaultdict(lambda: defaultdict(list))
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            figures = {
                name: float(row[name]) for name in ("coalitions", "cost", "error", "error_90", "half", "covered")
            }
            found[row["table"], row["method"]][int(row["budget"])].append(figures)
    return found


def column(lines: list[dict[str, float]], name: str) -> np.ndarray:
    """One figure of all rounds."""
    return np.array([line[name] for line in lines])


def tables(lines: Lines) -> list[str]:
    """The tables of rounds, MNIST's first, few participants first."""
    return sorted({table for table, _ in lines}, key=lambda one: (one[0] != "m", int(one.split("_")[1])))


def title(table: str, rounds: int) -> str:
    """What stands above a panel."""
    dataset, players = table.split("_")
    return f"{TITLES[dataset]}, {players} participants, {rounds} rounds"


def rows(lines: Lines, table: str) -> Iterator[str]:
    """The rows of a table of the page."""
    methods = {method: budgets for (own, method), budgets in lines.items() if own == table}
    players = int(table.split("_")[1])
    for method in sorted(methods, key=lambda one: (one != "default", one != "gtg", one)):
        told = set()
        for budget, found in sorted(methods[method].items()):
            coalitions = column(found, "coalitions").mean()
            if method != "default" and (budget not in (8 * players, 12 * players, 24 * players) or coalitions in told):
                continue
            told.add(coalitions)
            error = 100 * column(found, "error")
            covered = column(found, "covered")
            yield (
                f"| `{method}` | {coalitions:.0f} | {column(found, 'cost').mean():.0f} "
                f"| {np.median(error):.1f} | {np.quantile(error, 0.9):.1f} | {error.max():.1f} "
                f"| {column(found, 'half').mean():.2f} "
                f"| {'-' if np.isnan(covered).any() else f'{covered.mean():.2f}'} |"
            )


def page(lines: Lines) -> str:
    """The page's text."""
    parts = [TEXT]
    for table in tables(lines):
        rounds = max(len(found) for (own, _), budgets in lines.items() if own == table for found in budgets.values())
        parts.append(
            f"\n## {title(table, rounds)}\n\n"
            "| estimator | coalitions | cost | error, median | 90 % | largest | better half right | intervals right |\n"
            "|---|---|---|---|---|---|---|---|\n" + "\n".join(rows(lines, table)) + "\n"
        )
    return "".join(parts)


def picture(lines: Lines, out: Path) -> None:
    """Error over cost, a panel for each table of rounds."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    names = tables(lines)
    methods = sorted({method for _, method in lines} - {"default"})
    width = min(3, len(names))
    drawn = Figure(figsize=(4.2 * width, 3.4 * -(-len(names) // width) + 0.5), layout="constrained")
    panels = drawn.subplots(-(-len(names) // width), width, squeeze=False, sharey=True).flat
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    for panel, table in zip(panels, names, strict=False):
        for color, method in zip(COLORS, methods, strict=True):
            found = sorted(lines[table, method].items())
            cost = [column(own, "cost").mean() for _, own in found]
            low, middle, high = np.array(
                [np.quantile(100 * column(own, "error"), (0.1, 0.5, 0.9)) for _, own in found]
            ).T
            panel.plot(cost, middle, color=color, label=method, linewidth=1.8, marker="o", markersize=3)
            panel.fill_between(cost, low, high, color=color, alpha=0.15, linewidth=0)
        own = lines.get((table, "default"), {})
        for found in own.values():
            x, y = column(found, "cost").mean(), np.median(100 * column(found, "error"))
            panel.plot([x], [y], "*", color="black", markersize=11, label="default", zorder=3)
        panel.set(xscale="log", yscale="log")
        panel.set_title(title(table, max(map(len, lines[table, methods[0]].values()))), fontsize=10.5)
        panel.set(xlabel="evaluations of a model", ylabel="largest error, % of the spread")
        panel.grid(alpha=0.3)
        for axis, subs in ((panel.xaxis, (1, 2, 5)), (panel.yaxis, (1,))):
            axis.set_major_locator(LogLocator(subs=subs))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_locator(NullLocator())
    handles, labels = drawn.axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    drawn.savefig(out, dpi=110)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    lines = read(HERE / "estimators.csv")
    (folder / "README.md").write_text(page(lines))
    picture(lines, folder / "estimators.png")


if __name__ == "__main__":
    main()
