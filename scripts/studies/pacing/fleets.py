"""The fleets of the study as traces: writes even.csv, mixed.csv, harsh.csv and tied.csv beside this file.

    python scripts/studies/pacing/fleets.py

Speeds are the mid-quantiles of a log-normal law with the median of 9 examples a second; its sigma is how unequal the
clients are. In `tied` a client's speed follows its first class, which is its number modulo 10 (federation=classes):
class 0 is with the fastest ten, class 9 with the slowest.
"""

from pathlib import Path
from statistics import NormalDist

import numpy as np

HERE = Path(__file__).parent
CLIENTS, CLASSES, MEDIAN, MBIT, SEED = 100, 10, 9.0, 5, 0
SIGMA = {"even": 0.0, "mixed": 0.5, "harsh": 1.0, "tied": 1.0}


def speeds(fleet: str) -> np.ndarray:
    """Examples a second of each client, `[N]`."""
    quantiles = [NormalDist().inv_cdf((rank + 0.5) / CLIENTS) for rank in range(CLIENTS)]
    order = np.random.default_rng(SEED).permutation(CLIENTS)
    if fleet == "tied":
        order = order[np.argsort(-(order % CLASSES), kind="stable")]  # the slowest first
    by_client = np.empty(CLIENTS)
    by_client[order] = np.exp(SIGMA[fleet] * np.array(quantiles))
    return MEDIAN * by_client


def text(fleet: str) -> str:
    """The trace: one line a client, valid in all rounds."""
    lines = [f"{client},1,{MBIT},{speed:.6g}" for client, speed in enumerate(speeds(fleet))]
    return "\n".join(["client,round,bandwidth_mbit,compute_samples_per_s", *lines]) + "\n"


if __name__ == "__main__":
    for name in SIGMA:
        (HERE / f"{name}.csv").write_text(text(name))
