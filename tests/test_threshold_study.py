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
