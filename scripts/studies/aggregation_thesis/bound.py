"""The resilience bound of Krum, drawn, and how far clients' updates are from what it asks for.

    python scripts/studies/aggregation_thesis/bound.py    # writes bound.csv and bound.png beside this file

Krum is shown to be resilient where eta(n, f) * sqrt(d) * sigma < ||g|| (Blanchard et al., NeurIPS 2017, proposition 1;
the thesis repeats it): n clients, f of them malicious, the updates of the others with mean g and d coordinates of
standard deviation sigma. So ||g|| / (sqrt(d) * sigma), the signal of a round, must be above eta. It is measured here on
the digits as in the cells under attack, with 20 clients that are all honest, in 30 rounds and for eight seeds.
"""

import csv
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1]))

WORDS = ["experiment=robustness", "dataset=digits", "partition=dirichlet", "scenario.clients=20"]
WORDS += ["scenario.participants=20", "rounds=30", "evaluation.test=false", "engine.workers=1"]
CLIENTS, MALICIOUS, SEEDS = 20, 4, range(8)
PARTS = {"1": range(1, 2), "2 to 10": range(2, 11), "11 to 30": range(11, 31)}


def eta(n: int, f: int) -> float:
    """How many times the deviation of the updates their mean must be long, for n > 2 f + 2."""
    return math.sqrt(2 * (n - f + (f * (n - f - 2) + f**2 * (n - f - 1)) / (n - 2 * f - 2)))


def signal(updates: torch.Tensor) -> float:
    """||g|| / (sqrt(d) * sigma) of honest updates `[n, D]`: their mean, and the root of their variances' sum."""
    return float(updates.mean(dim=0).norm() / updates.var(dim=0).sum().sqrt())


def measured(seed: int) -> list[float]:
    """The signal of each round of a run."""
    from bench import world_of

    from fedexp.simulation.round import run_round

    world = world_of([*WORDS, f"seed={seed}"])
    state, signals = world.initial_state(), []
    while state.round < world.exp.rounds:
        state, _, sent = run_round(world.exp, world, state)
        signals.append(signal(sent.delta))
    return signals


def lines() -> Iterator[dict[str, object]]:
    """The mean signal of parts of each seed's run, beside the bound."""
    for seed in SEEDS:
        values = measured(seed)
        for part, numbers in PARTS.items():
            mean = sum(values[number - 1] for number in numbers) / len(numbers)
            bound = eta(CLIENTS, MALICIOUS)
            yield {"rounds": part, "seed": seed, "signal": f"{mean:.4f}", "eta(20, 4)": f"{bound:.4f}"}


def draw(signals: list[float]) -> None:
    """eta by f for several n, and the range of the measured signals."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for n in (10, 20, 50, 100):
        most = (n - 3) // 2
        axes.plot(range(most + 1), [eta(n, f) for f in range(most + 1)], marker=".", label=f"n = {n}")
    axes.axhspan(min(signals), max(signals), color="grey", alpha=0.4, label="measured on the digits, n = 20")
    axes.set(yscale="log", xlabel="malicious clients f", ylabel=r"$\eta(n, f)$, and $\|g\| / (\sqrt{d}\,\sigma)$")
    axes.set_title("Krum is shown to be resilient where the signal is above the line")
    axes.legend()
    figure.savefig(HERE / "bound.png", dpi=110, metadata={"Software": None})


def main() -> None:
    found = list(lines())
    with (HERE / "bound.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    draw([float(str(line["signal"])) for line in found])


if __name__ == "__main__":
    main()
