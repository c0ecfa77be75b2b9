"""Clusters over thresholds: counted by hand, and the table is made of the distances that are kept."""

import csv
from pathlib import Path

import numpy as np
from script_modules import imported

FOLDER = Path(__file__).parents[1] / "scripts" / "studies" / "clustered_har"


def test_clients_that_come_one_after_another_by_hand():
    """0 and 1 are at 1, 1 and 2 at 2, 0 and 2 at 3: with 2.5 the client 1 is in the cluster of 0, and 2 founds one."""
    distances = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    with imported(FOLDER, "thresholds") as (thresholds,):
        assert [thresholds.clusters(distances, value) for value in (0.5, 1.5, 2.5, 3.5)] == [3, 2, 2, 1]
        found = thresholds.shares({(setting, 0): distances for setting in thresholds.PUBLISHED}, np.array([0.5, 1.5]))
        assert found["personal_autoencoder"].tolist() == [0.0, 1.0]
        assert found["five_persons"].tolist() == [0.0, 0.0]


def test_the_table_is_made_again():
    with imported(FOLDER, "thresholds") as (thresholds,):
        made = thresholds.summary(thresholds.read(FOLDER / "thresholds.csv"))
    with (FOLDER / "threshold_counts.csv").open(newline="") as file:
        assert list(csv.reader(file)) == made


def test_the_page_says_how_many_counts_differ_from_those_of_the_runs():
    """The distances are of a CPU with AVX-512, the runs of one with AVX2."""
    with imported(FOLDER, "thresholds") as (thresholds,):
        distances = thresholds.read(FOLDER / "thresholds.csv")
        counts = {key: thresholds.clusters(matrix, 6.0) for key, matrix in distances.items()}
    differing, people = [], [setting for setting in thresholds.PUBLISHED if not setting.startswith("personal")]
    with (FOLDER.parents[1] / "replays" / "clustered_har" / "results.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            setting, _, number = line["cell"].partition(", ")
            key = (setting.replace(" ", "_"), int(line["seed"]))
            if key[0] in people and number == "clusters":
                differing.append(counts[key] != float(line["value"]))
    five = [counts["five_persons", seed] for seed in range(8)]
    text = " ".join((FOLDER / "README.md").read_text().split())
    assert f"{sum(differing)} of the {len(differing)} counts of people at threshold 6 differ" in text
    assert f"five people make {min(five)} to {max(five)} clusters instead of" in text
