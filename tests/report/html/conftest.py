"""A browser, and a sweep of many run folders written by hand."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from browsers import browser
from run_folders import write_config

__all__ = ["browser"]


@pytest.fixture
def make_sweep(tmp_path: Path) -> Callable[[int, int], Path]:
    """Writes so many runs of so many rounds, each of another learning rate, with every column that is drawn."""

    def make(runs: int, rounds: int) -> Path:
        noise = np.random.default_rng(0)
        for number in range(runs):
            _write(tmp_path / "sweep" / str(number), number, rounds, noise)
        return tmp_path / "sweep"

    return make


def _write(folder: Path, number: int, rounds: int, noise: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    names = ("test_loss", "test_accuracy", "validation_loss", "validation_accuracy", "train_loss")
    stages = ("select_s", "train_s", "aggregate_s", "evaluate_s")
    more = ("aggregator.radius", "attack.malicious", "personal_accuracy")
    sums = ("host_s", "sim_s", "privacy.epsilon_pld")
    header = ",".join(("round", "participants", *names, *stages, *more, *sums))
    free = noise.random((rounds, len(names) + len(stages) + len(more)))
    table = np.column_stack(
        [np.arange(1, rounds + 1), np.full(rounds, 5), free, noise.random((rounds, len(sums))).cumsum(axis=0)]
    )
    np.savetxt(folder / "metrics.csv", table, delimiter=",", header=header, comments="", fmt="%.10g")
    taken = noise.integers(0, 100, size=(20, 2))
    np.savetxt(folder / "clients.csv", taken, delimiter=",", header="round,client", comments="", fmt="%d")
    config = {
        "_target_": "fedexp.simulation.setup.experiment.Experiment",
        "seed": 0,
        "local": {"lr": (number + 1) / 1000},
        "evaluation": {"roa": [0.5, 0.8]},
    }
    write_config(folder, config, {"selector": "random"})
    facts = {"clients": 100, "versions": {"fedexp": "0.1.0", "torch": "2.9"}, "git": {"commit": "0123456789abcdef"}}
    (folder / "summary.json").write_text(json.dumps(facts))
