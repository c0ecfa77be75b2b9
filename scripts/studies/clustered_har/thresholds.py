"""How many clusters each threshold gives in the four settings of the clustering text, which tells none.

    python scripts/studies/clustered_har/thresholds.py              # thresholds.csv: distances, of 8 seeds
    python scripts/studies/clustered_har/thresholds.py --draw       # thresholds.png, and what it says

Where no client is near to another, each founds a cluster in the first round. The distances between the founders then
say how many clusters there would be with any threshold.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from fedexp.parts.clustering.output_similarity import choose_cluster

HERE = Path(__file__).parent
PUBLISHED = {"five_persons": 5, "ten_persons": 5, "ten_clients": 7, "personal_autoencoder": 2}
SEEDS = range(8)
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
Distances = dict[tuple[str, int], np.ndarray]


def founders_distances(setting: str, seed: int) -> np.ndarray:
    """The distances `[N, N]` of the clients' models after a round, as `clustering=output_similarity` has them."""
    sys.path.append(str(HERE.parents[1]))
    from bench import world_of

    from fedexp.parts.clustering.output_similarity import output_distances
    from fedexp.simulation import context
    from fedexp.simulation.rounds import run_rounds

    words = [f"setting={setting}", "experiment=clustered_har", f"seed={seed}", "rounds=1", "clustering.threshold=1e-9"]
    world = world_of(words)
    for state, _, _ in run_rounds(world.exp, world, world.initial_state()):
        founders = state.memory["clustering"]["references"]
        if len(founders) != world.partition.clients:
            raise SystemExit(
                f"{setting}, seed {seed}: {len(founders)} of {world.partition.clients} clients founded one"
            )
        outputs = context.make_context(world, 1).public.outputs(founders)
        return output_distances(outputs, outputs)
    raise SystemExit("no round was run")


def clusters(distances: np.ndarray, threshold: float) -> int:
    """How many clusters clients found that come one after another, given their distances `[N, N]`."""
    founders: list[int] = []
    for client, row in enumerate(distances):
        if choose_cluster(row[founders], threshold, first_match=False) is None:
            founders.append(client)
    return len(founders)


def measure(path: Path) -> None:
    """Adds to the file what it lacks, a setting and a seed at a time."""
    known = read(path) if path.exists() else {}
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(["setting", "seed", "client", "other", "distance"])
        for setting in PUBLISHED:
            for seed in SEEDS:
                if (setting, seed) in known:
                    continue
                for (client, other), value in np.ndenumerate(founders_distances(setting, seed)):
                    if client > other:
                        writer.writerow([setting, seed, client, other, f"{value:.5g}"])
                file.flush()
                print(setting, seed, flush=True)


def read(path: Path) -> Distances:
    """The distances of a setting and a seed, `[N, N]`."""
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    distances = {}
    for line in lines:
        key = line["setting"], int(line["seed"])
        if key not in distances:
            size = 1 + max(int(other["client"]) for other in lines if (other["setting"], int(other["seed"])) == key)
            distances[key] = np.zeros((size, size))
        client, other = int(line["client"]), int(line["other"])
        distances[key][client, other] = distances[key][other, client] = float(line["distance"])
    return distances


def shares(distances: Distances, thresholds: np.ndarray) -> dict[str, np.ndarray]:
    """The share of seeds that have the published number of clusters, for each setting and threshold `[T]`."""
    return {
        setting: np.array(
            [
                np.mean(
                    [clusters(matrix, value) == number for (name, _), matrix in distances.items() if name == setting]
                )
                for value in thresholds
            ]
        )
        for setting, number in PUBLISHED.items()
    }


def summary(distances: Distances) -> list[list[str]]:
    """For each published number, and for several together, the thresholds that give it to some seed, and the best."""
    thresholds = np.unique(np.concatenate([matrix[matrix > 0] for matrix in distances.values()])) * (1 + 1e-9)
    found = shares(distances, thresholds)
    people = np.prod([found[setting] for setting in list(PUBLISHED)[:3]], axis=0)
    rows = [(setting.replace("_", " "), str(number), found[setting]) for setting, number in PUBLISHED.items()]
    rows += [("the first three together", "5, 5, 7", people)]
    rows += [("all four together", "5, 5, 7, 2", people * found["personal_autoencoder"])]
    return [
        ["setting", "published", "thresholds", "best threshold", "seeds that have it there"],
        *([name, number, *_told(share, thresholds)] for name, number, share in rows),
    ]


def _told(share: np.ndarray, thresholds: np.ndarray) -> list[str]:
    if not share.any():
        return ["none", "-", "0 %"]
    some, best = thresholds[share > 0], np.median(thresholds[share == share.max()])
    reach = "up to" if share[0] else f"{some[0]:.2g} to"
    return [f"{reach} {some[-1]:.2g}", f"{best:.2g}", f"{share.max():.0%}".replace("%", " %")]


def draw(distances: Distances, path: Path) -> None:
    """Clusters over thresholds, the mean and the range of all seeds, and the published numbers."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    thresholds = np.geomspace(0.02, 20, 300)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for (setting, number), color in zip(PUBLISHED.items(), COLORS, strict=True):
        counts = np.array(
            [
                [clusters(matrix, value) for value in thresholds]
                for (name, _), matrix in distances.items()
                if name == setting
            ]
        )
        axes.plot(
            thresholds, counts.mean(axis=0), color=color, label=f"{setting.replace('_', ' ')}, published {number}"
        )
        axes.fill_between(thresholds, counts.min(axis=0), counts.max(axis=0), color=color, alpha=0.15, linewidth=0)
        axes.axhline(number + 0.04 * list(PUBLISHED).index(setting), color=color, linestyle=":", linewidth=1)
    axes.set(xscale="log", xlabel="threshold", ylabel="clusters")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 0.93))
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true")
    arguments = parser.parse_args()
    if arguments.draw:
        distances = read(HERE / "thresholds.csv")
        draw(distances, HERE / "thresholds.png")
        with (HERE / "threshold_counts.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(summary(distances))
    else:
        measure(HERE / "thresholds.csv")


if __name__ == "__main__":
    main()
