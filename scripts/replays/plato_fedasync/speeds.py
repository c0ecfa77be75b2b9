"""The fleet of Plato's example as a trace: writes speeds.csv beside this file.

    python scripts/replays/plato_fedasync/speeds.py

A client sleeps min(x, 30) s beside the 10 s of each epoch, x being the Lomax (numpy's pareto) draws of shape 1 with
seed 1, one a client (plato/config.py and plato/clients/simple.py, commit 60d6779). An epoch has 600 examples, and links
take no time.
"""

from pathlib import Path

import numpy as np

CLIENTS, EXAMPLES, EPOCH_S, LONGEST_S, SEED = 100, 600, 10.0, 30.0, 1
MBIT = 1e9  # fast enough to take no time


def sleeps() -> np.ndarray:
    """Seconds beside each epoch, `[N]`."""
    return np.minimum(np.random.RandomState(SEED).pareto(1.0, CLIENTS), LONGEST_S)


def text() -> str:
    """The trace: one line a client, valid in all rounds."""
    speed = EXAMPLES / (EPOCH_S + sleeps())
    lines = [f"{client},1,{MBIT:g},{value:.12g}" for client, value in enumerate(speed)]
    return "\n".join(["client,round,bandwidth_mbit,compute_samples_per_s", *lines]) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "speeds.csv").write_text(text())
