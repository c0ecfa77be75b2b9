"""Estimators of Shapley values on real rounds: error and ranking against what the evaluations cost.

    python scripts/studies/shapley/compare.py record TABLES DATA_DIR mnist 6 8 10 [rounds=30] [seed=1 ...]
    python scripts/studies/shapley/compare.py compare estimators.csv TABLES/*.npz
    python scripts/studies/shapley/page.py

`record` runs GreedyFed with exact values once for each number of participants and keeps the utilities of all 2^M
coalitions of every round so far in TABLES/mnist_6.npz: on a part of the validation examples and on the others,
`part` and `others [rounds, 2^M]`, how many examples these are, `examples [2]`, and what each client counted in the
means, `share [rounds, M]`. A table that is complete stays. `compare` appends a line for each table, round, method and
budget, means over `SEEDS` seeds; lines that are there already stay, too:

coalitions  asked for; budget, what was allowed
cost        evaluations of a model, in units of one on all validation examples
error       largest error in units of the spread of the exact values; error_90, the 90 % quantile over the seeds
half        share of the seeds in which the better half of the clients was that of the exact values
covered     share of the values within 1.96 standard errors
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

from fedexp.api import run
from fedexp.files.atomic import atomic_path
from fedexp.maths.shapley.estimate import Estimate, Shapley
from fedexp.maths.shapley.game.exact import exact
from fedexp.maths.shapley.game.utilities import all_coalitions

SEEDS = 5
PART = 0.25  # of the validation examples
BUDGETS = (4, 6, 8, 12, 24, 48)  # coalitions a player
WAYS = {
    "gtg": Shapley(method="gtg", permutations_per_client=10_000, stop="budget"),
    "surrogate": Shapley(method="surrogate", part=1, stop="budget"),
    "surrogate, part": Shapley(method="surrogate", part=PART, stop="budget"),
    "default": Shapley(method="surrogate", part=PART),
}
KEY = ("table", "round", "method", "budget")
MEASURED = ("seeds", "coalitions", "cost", "error", "error_90", "half", "covered")


class Rounds:
    """Takes the place of an estimator and keeps the utilities of every coalition that it meets."""

    def __init__(self, out: Path, players: int) -> None:
        self.out, self.players, self.plain = out, players, Shapley.estimate
        self.part: list[np.ndarray] = []
        self.others: list[np.ndarray] = []
        self.share: list[np.ndarray] = []

    def __call__(self, shapley: Shapley, players, evaluate, rng, *_, share, examples, **_keys) -> Estimate:
        """Exact values; the utilities are kept if everybody took part."""
        if players != self.players:
            exactly = replace(shapley, method="exact")
            return self.plain(exactly, players, evaluate, rng, share=share, examples=examples)
        first, members = round(PART * examples), all_coalitions(players)
        tables = [evaluate(members, places) for places in (range(first), range(first, examples))]
        sizes = np.array([first, examples - first])
        for kept, one in zip((self.part, self.others, self.share), (*tables, share), strict=True):
            kept.append(one)
        told = {name: np.array(getattr(self, name)) for name in ("part", "others", "share")}
        with atomic_path(self.out) as partial, partial.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, examples=sizes, **told)
        return Estimate(exact(np.average(tables, axis=0, weights=sizes)), "exact", 2**players, True, 0.0)


def record(out: Path, data_dir: str, dataset: str, players: int, words: list[str]) -> None:
    """Keeps the utilities of every round of one run with exact values."""
    rounds = Rounds(out.with_suffix(".begun"), players)
    asked = ["selector=greedyfed", f"dataset={dataset}", "rounds=30", *words]
    place = {"scenario.participants": players, "data_dir": data_dir}
    with (
        TemporaryDirectory() as folder,
        patch.object(Shapley, "estimate", lambda shapley, *given, **keys: rounds(shapley, *given, **keys)),
    ):
        run(*asked, folder=Path(folder) / "run", **place)
    rounds.out.rename(out)


class Table:
    """One round's utilities of all coalitions, and what asking for them costs."""

    def __init__(self, part: np.ndarray, others: np.ndarray, examples: np.ndarray) -> None:
        self.part, self.others, self.examples = part, others, examples
        self.whole = np.average([part, others], axis=0, weights=examples)
        self.players, self.cost = len(part).bit_length() - 1, 0.0

    def __call__(self, members: np.ndarray, places: range) -> np.ndarray:
        self.cost += len(members) * len(places) / self.examples.sum()
        whole = len(places) == self.examples.sum()
        found = self.whole if whole else self.others if places.start else self.part
        return found[(members << np.arange(self.players)).sum(axis=1)]


def measured(table: Table, share: np.ndarray, method: str, budget: int) -> dict[str, float]:
    """What a method makes of one round with so many coalitions, over the seeds."""
    true, way, table.cost = exact(table.whole), replace(WAYS[method], coalitions=budget), 0.0
    found = [
        way.estimate(table.players, table, np.random.default_rng(seed), share=share, examples=int(table.examples.sum()))
        for seed in range(SEEDS)
    ]
    error = [np.abs(one.values - true).max() / np.ptp(true) for one in found]
    inside = [np.abs(one.values - true) <= 1.96 * one.errors + 1e-12 for one in found if one.errors is not None]
    values = (
        SEEDS,
        np.mean([one.coalitions for one in found]),
        table.cost / SEEDS,
        np.mean(error),
        np.quantile(error, 0.9),
        np.mean([best_half(one.values) == best_half(true) for one in found]),
        np.mean(inside) if inside else np.nan,
    )
    return {name: round(float(value), 5) for name, value in zip(MEASURED, values, strict=True)}


def best_half(values: np.ndarray) -> set[int]:
    """The better half of the players."""
    return set(np.argsort(-values, kind="stable")[: len(values) // 2].tolist())


def points(paths: list[Path]) -> Iterator[tuple[tuple[str, ...], Table, np.ndarray, str, int]]:
    """Every line of the study: its key, the utilities, the shares, the method, the budget."""
    for path in paths:
        kept = np.load(path)
        for number, part, others, share in zip(
            range(1, len(kept["part"]) + 1), kept["part"], kept["others"], kept["share"], strict=True
        ):
            table = Table(part, others, kept["examples"])
            budgets = [times * table.players for times in BUDGETS if times * table.players < len(part)]
            for method in WAYS:
                for budget in budgets if method != "default" else [12 * table.players]:
                    yield (path.stem, str(number), method, str(budget)), table, share, method, budget


def compare(out: Path, paths: list[Path]) -> None:
    """Appends the lines that are not there yet."""
    done = set()
    if out.exists():
        with out.open(newline="") as file:
            done = {tuple(row[name] for name in KEY) for row in csv.DictReader(file)}
    with out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow([*KEY, *MEASURED])
        for key, table, share, method, budget in points(paths):
            if key not in done:
                writer.writerow([*key, *measured(table, share, method, budget).values()])
                file.flush()


def main() -> None:
    step, out, *rest = sys.argv[1:]
    if step == "compare":
        compare(Path(out), [Path(word) for word in rest])
        return
    data_dir, dataset, *words = rest
    Path(out).mkdir(parents=True, exist_ok=True)
    for players in (int(word) for word in words if word.isdigit()):
        path = Path(out) / f"{dataset}_{players}.npz"
        if not path.exists():
            record(path, data_dir, dataset, players, [word for word in words if not word.isdigit()])


if __name__ == "__main__":
    main()
