"""Memory at its peak of rounds with many participants, as MB of PSS over all processes of `fedexp run`.

    python scripts/bench_memory.py                 # all; two workers
    python scripts/bench_memory.py --runs mlp_100,mlp_10000 --workers 1

`mlp_...`: so many of 10,000 clients a round, rows of 38 kB. `resnet18_gn`: 1,000 clients, rows of 44.7 MB.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import write_rows
from bench_start import watched

MLP = ("dataset=synthetic", "dataset.shape=[64]", "dataset.train_size=40000", "model=mlp", "scenario.clients=10000")
RESNET = ("dataset=synthetic", "dataset.shape=[3,32,32]", "dataset.train_size=2000", "model=resnet18_gn")
RUNS = {
    "mlp_100": (*MLP, "scenario.participants=100", "rounds=4"),
    "mlp_10000": (*MLP, "scenario.participants=10000", "rounds=4"),
    "resnet18_gn": (*RESNET, "scenario.clients=1000", "scenario.participants=1000", "rounds=1"),
}
SHARED = ("federation=iid", "dataset.test_size=100", "pictures=false")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("outputs/bench_memory.csv"))
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in arguments.runs.split(","):
        words = [*RUNS[name], *SHARED, f"engine.workers={arguments.workers}"]
        with tempfile.TemporaryDirectory() as folder:
            _, peak = watched([sys.executable, "-m", "fedexp", "run", *words], Path(folder), 1)
        rows.append({"run": name, "workers": arguments.workers, "pss_mb": round(peak)})
    write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()
