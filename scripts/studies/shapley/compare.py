"""Estimators of Shapley values on real rounds: error and ranking against the coalitions that were evaluated.

    python scripts/studies/shapley/compare.py record TABLES DATA_DIR mnist 6 8 10 [rounds=30] [local.lr=0.05 ...]
    python scripts/studies/shapley/compare.py compare estimators.csv TABLES/*.npz

`record` runs GreedyFed with exact values once for each number of participants and keeps the utilities of all 2^M
coalitions of every round, `utility [rounds, 2^M]` in TABLES/mnist_6.npz, and what each client counted in the means,
`share [rounds, M]`; what is there already stays. `compare` appends
a line for each table, round, method and budget, means over `SEEDS` seeds; lines that are there already stay, too:

coalitions  asked for; budget, what was allowed
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
from fedexp.core.files import replacing
from fedexp.maths.shapley.affordable import least
from fedexp.maths.shapley.estimate import Estimate, Shapley
from fedexp.maths.shapley.exact import exact

SEEDS = 20
SHARES = (0.0625, 0.125, 0.25, 0.5, 0.75)  # of the 2^M coalitions
WAYS = {
    name: Shapley(method=name, permutations_per_client=10_000, stop="budget")
    for name in ("gtg", "permutations", "antithetic", "stratified", "kernel", "leverage", "surrogate")
}
KEY = ("table", "round", "method", "budget")
MEASURED = ("seeds", "coalitions", "error", "error_90", "half", "covered")


def record(out: Path, data_dir: str, dataset: str, players: int, words: list[str]) -> None:
    """Keeps the utilities of every round of one run with exact values."""
    tables: list[np.ndarray] = []
    shares: list[np.ndarray] = []

    def keeping(utility: np.ndarray) -> np.ndarray:
        tables.append(utility)
        return exact(utility)

    def sharing(self: Shapley, players: int, *rest, share: np.ndarray, **keys) -> Estimate:
        shares.extend([share] * (players > 0))  # nobody has no table
        return plain(self, players, *rest, share=share, **keys)

    asked = ["selector=greedyfed", f"dataset={dataset}", "selector.shapley.method=exact", "rounds=30", *words]
    place = {"scenario.participants": players, "data_dir": data_dir}
    plain = Shapley.estimate
    with (
        TemporaryDirectory() as folder,
        patch("fedexp.maths.shapley.estimate.exact", keeping),
        patch.object(Shapley, "estimate", sharing),
    ):
        run(*asked, folder=Path(folder) / "run", **place)
    whole = [number for number, table in enumerate(tables) if len(table) == 2**players]
    with replacing(out) as partial, partial.open("wb") as file:
        utility, share = (np.array([kept[one] for one in whole]) for kept in (tables, shares))
        np.savez_compressed(file, utility=utility, share=share)


def measured(utility: np.ndarray, share: np.ndarray, method: str, budget: int) -> dict[str, float]:
    """What a method makes of one round with so many coalitions, over the seeds."""
    players, true = len(utility).bit_length() - 1, exact(utility)
    way = replace(WAYS[method], coalitions=budget)
    found = [
        way.estimate(
            players,
            lambda members: utility[(members << np.arange(players)).sum(axis=1)],
            np.random.default_rng(seed),
            share=share,
        )
        for seed in range(SEEDS)
    ]
    error = [np.abs(one.values - true).max() / np.ptp(true) for one in found]
    inside = [np.abs(one.values - true) <= 1.96 * one.errors + 1e-12 for one in found if one.errors is not None]
    values = (
        SEEDS,
        np.mean([one.coalitions for one in found]),
        np.mean(error),
        np.quantile(error, 0.9),
        np.mean([best_half(one.values) == best_half(true) for one in found]),
        np.mean(inside) if inside else np.nan,
    )
    return {name: round(float(value), 5) for name, value in zip(MEASURED, values, strict=True)}


def best_half(values: np.ndarray) -> set[int]:
    """The better half of the players."""
    return set(np.argsort(-values, kind="stable")[: len(values) // 2].tolist())


def points(tables: list[Path]) -> Iterator[tuple[tuple[str, ...], np.ndarray, np.ndarray, str, int]]:
    """Every line of the study: its key, the utilities, the shares (equal in tables without), the method, the budget."""
    for path in tables:
        table = np.load(path)
        players = table["utility"].shape[1].bit_length() - 1
        shares = table["share"] if "share" in table else np.ones((len(table["utility"]), players))
        for number, (utility, share) in enumerate(zip(table["utility"], shares, strict=True), start=1):
            floor = least(len(utility).bit_length() - 1)
            for budget in sorted({max(int(share * len(utility)), floor) for share in SHARES}):
                for method in WAYS:
                    yield (path.stem, str(number), method, str(budget)), utility, share, method, budget


def compare(out: Path, tables: list[Path]) -> None:
    """Appends the lines that are not there yet."""
    done = set()
    if out.exists():
        with out.open(newline="") as file:
            done = {tuple(row[name] for name in KEY) for row in csv.DictReader(file)}
    with out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow([*KEY, *MEASURED])
        for key, utility, share, method, budget in points(tables):
            if key not in done:
                writer.writerow([*key, *measured(utility, share, method, budget).values()])
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
