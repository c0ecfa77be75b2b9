"""The published grid of PFNM's hyperparameters, on the same local models and scored on the server's validation data.

    python scripts/studies/pfnm_oneshot/grid.py grid.csv
    python scripts/studies/pfnm_oneshot/grid.py grid_small_steps.csv local.lr=0.001

Trains the clients of `experiment=pfnm_oneshot`, with the overrides given, once a seed and matches their networks at
every point; writes the file. `test_accuracy` is there to be reported, never to choose by.
"""

import csv
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from bench import build

from fedexp.simulation import context
from fedexp.simulation.build_world import build_world
from fedexp.simulation.checks.pending_checks import PendingChecks
from fedexp.simulation.round import fold, run_round
from fedexp.simulation.setup import compatibility
from fedexp.training.workers.pool import WorkerPool

SEEDS = (0, 1, 2)
GAMMA, S, S0, FACTOR = (1.0, 1e-3, 50.0), (1.0, 0.5, 0.1), (1.0, 10.0), (2, 1)


def points(seed: int, overrides: list[str]) -> list[dict[str, object]]:
    exp = build(["experiment=pfnm_oneshot", "engine=loop", "engine.workers=1", *overrides, f"seed={seed}"])
    compatibility.refuse(exp)
    world = build_world(exp, None, WorkerPool())
    _, _, sent = run_round(exp, world, world.initial_state())
    rows = []
    for gamma, s, s0, factor in product(GAMMA, S, S0, FACTOR):
        point = {"gamma": gamma, "s": s, "s0": s0, "popularity_factor": factor}
        matching = replace(exp, aggregator=replace(exp.aggregator, **point))
        with PendingChecks() as checks:
            (model,), memory = fold(matching, (world.first,), sent, {}, context.make_context(world, 1), checks)
        assert world.validation is not None
        rows.append(
            {"seed": seed, **point, "width": memory["aggregator"]["columns"]["width_1"]}
            | {"validation_accuracy": round(world.score(model, world.validation).metrics["accuracy"], 4)}
            | {"test_accuracy": round(world.score(model, world.test).metrics["accuracy"], 4)}
        )
        print("  ".join(f"{name}={value}" for name, value in rows[-1].items()), flush=True)
    return rows


def main() -> None:
    out, *overrides = sys.argv[1:]
    rows = [row for seed in SEEDS for row in points(seed, overrides)]
    with Path(out).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
