"""The search for the rates of FedRep's table: of its own cells, and what it found of them."""

from pathlib import Path

import pandas as pd
import yaml

from fedexp.replay.catalog import tables_dir

FOLDER = Path(__file__).parents[2] / "scripts/replays/fedrep_cifar10"
RATES = {f"local.lr={rate}": rate for rate in (0.01, 0.03, 0.1)}
CONFIG = yaml.safe_load((tables_dir() / "fedrep_cifar10.yml").read_text())


def test_its_points_are_the_cells():
    points = yaml.safe_load((FOLDER / "methods.yaml").read_text())
    words = [sorted(f"{key}={value}" for key, value in point.items()) for point in points]
    assert words == [sorted(word for word in cell["overrides"] if word not in RATES) for cell in CONFIG["cells"]]


def test_every_trial_is_of_a_cell_and_of_a_rate_that_all_try():
    trials = pd.read_csv(FOLDER / "tuning.csv")
    assert set(trials["cell"]) <= {cell["name"] for cell in CONFIG["cells"]}
    assert set(trials["local.lr"]) == set(RATES.values())
    assert set(trials["seed"]) == {100}, "none of the seeds of the table"
    assert not trials.duplicated(["cell", "local.lr"]).any()
    assert trials["validation_accuracy"].between(0, 1).all()


def test_every_cell_has_the_rate_that_was_best():
    trials = pd.read_csv(FOLDER / "tuning.csv")
    for cell in CONFIG["cells"]:
        tried = trials[trials["cell"] == cell["name"]]
        by_rate = dict(zip(tried["local.lr"], tried["validation_accuracy"], strict=True))
        assert by_rate.keys() == set(RATES.values())
        assert [RATES[word] for word in cell["overrides"] if word in RATES] == [max(by_rate, key=by_rate.__getitem__)]
