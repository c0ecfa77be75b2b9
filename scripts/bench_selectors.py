"""Milliseconds that every selector's own work takes in a round, at N = 1,000 and N = 1,000,000 clients.

    python scripts/bench_selectors.py

Own work is choosing and learning, less the evaluation of coalitions of Shapley values; the first round, in which some
selectors ask all clients for a loss, stands apart. Ten clients take part a round (100 are asked by the
selectors with a deadline); each holds one example.
"""

import csv
import statistics
import sys
from pathlib import Path

from bench import build

from fedexp.config.location import conf_dir

SIZES = (1_000, 1_000_000)
ROUNDS = 12


def measure(selector: str, clients: int) -> dict[str, object]:
    from fedexp.simulation.build_world import build_world
    from fedexp.simulation.rounds import run_rounds
    from fedexp.training.workers.pool import WorkerPool

    needs_fleet = selector in ("fedcs", "hybridfl", "dyn_hybridfl")
    experiment = build(
        [
            f"selector={selector}",
            "fleet=simulated",
            "dataset=synthetic",
            "dataset.shape=[8]",
            "dataset.train_size=1100000",
            "dataset.test_size=100",
            f"scenario.clients={clients}",
            f"scenario.participants={100 if needs_fleet else 10}",
            "federation=iid",
            f"rounds={ROUNDS}",
            "local.epochs=null",
            "local.steps=1",
            "local.batch_size=1",
            "engine=loop",
            "engine.workers=1",
            "evaluation.every=100",
            "evaluation.validation_fraction=0.001",
            *(["selector.round_s=5"] if needs_fleet else []),
        ]
    )
    world = build_world(experiment, None, WorkerPool())
    rows = [row for _, row, _ in run_rounds(experiment, world, world.initial_state())]
    seconds = [row["select_s"] - row.get("selector.shapley_s", 0.0) for row in rows]
    return {
        "selector": selector,
        "clients": clients,
        "first_ms": round(1e3 * seconds[0], 1),
        "median_ms": round(1e3 * statistics.median(seconds[1:]), 2),
        "largest_ms": round(1e3 * max(seconds[1:]), 2),
    }


def main() -> None:
    names = sys.argv[1:] or sorted(path.stem for path in (conf_dir() / "selector").glob("*.yaml") if path.stem != "all")
    writer = None
    out = Path("outputs/bench_selectors.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", newline="") as file:
        for name in names:
            for clients in SIZES:
                row = measure(name, clients)
                writer = writer or csv.DictWriter(file, list(row))
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
                print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
