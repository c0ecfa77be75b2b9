"""Milliseconds that every selector's own work takes in a round, at N = 1,000 and N = 1,000,000 clients.

    python scripts/bench_selectors.py

Own work is choosing and learning, less the evaluation of coalitions of Shapley values; the first round, in which some
selectors ask all clients for a loss, stands apart. Ten clients take part a round (100 are asked by the
selectors with a deadline); each holds one example.
"""

import statistics
import sys
from pathlib import Path

from bench import world_of, write_rows

from fedexp.config.location import conf_dir

SIZES = (1_000, 1_000_000)
ROUNDS = 12


def measure(selector: str, clients: int) -> dict[str, object]:
    from fedexp.simulation.rounds import run_rounds

    needs_fleet = selector in ("fedcs", "hybridfl", "dyn_hybridfl")
    world = world_of(
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
    rows = [row for _, row, _ in run_rounds(world.exp, world, world.initial_state())]
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
    write_rows(Path("outputs/bench_selectors.csv"), (measure(name, clients) for name in names for clients in SIZES))


if __name__ == "__main__":
    main()
