"""What summary.json says of privacy when a run has ended."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from worlds import world_of

from fedexp.run.run import run
from fedexp.run.summary import figures, read_metrics


def summary(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text(), parse_constant=pytest.fail)


def test_the_last_epsilons_and_the_promise(tiny: Callable[..., dict[str, Any]], tmp_path: Path):
    run(tiny("algorithm=dp_sgd", "local.batch_size=4"), tmp_path)
    told, table = summary(tmp_path)["privacy"], pd.read_csv(tmp_path / "metrics.csv")
    assert told["epsilon_pld"] == table["privacy.epsilon_pld"].iloc[-1] == pytest.approx(3, rel=0.02)
    assert told["epsilon_rdp"] == table["privacy.epsilon_rdp"].iloc[-1]
    assert (told["delta"], told["noise_multiplier"]) == (1e-5, table["privacy.noise_multiplier"].iloc[-1])
    assert "against all who see its uploads" in told["promise"]


def test_further_metrics_and_the_clients_own_models_have_their_last_values(
    tiny: Callable[..., dict[str, Any]], tmp_path: Path
):
    words = ("evaluation.metrics=[macro_f1,accuracy,class_recall]", "evaluation.personal_fraction=0.3", "rounds=2")
    run(tiny("algorithm=ditto", *words), tmp_path)
    told, last = summary(tmp_path), pd.read_csv(tmp_path / "metrics.csv").iloc[-1]
    finals = [name for name in told if name.startswith("final_")]
    assert finals == ["final_macro_f1", "final_accuracy", "final_personal_macro_f1"]
    assert told["final_accuracy"] == last["test_accuracy"]
    assert told["final_personal_macro_f1"] == last["personal_macro_f1"]


def test_what_the_last_round_lacks_has_no_end_and_no_area(tiny: Callable[..., dict[str, Any]], tmp_path: Path):
    """An earlier value would be too good: cells are empty where a number has no bound."""
    words = ("rounds=3", "evaluation.metrics=[accuracy,macro_f1]", "algorithm=dp_sgd", "local.batch_size=4")
    config = tiny(*words)
    run(config, tmp_path)
    world, table = world_of(config), read_metrics(tmp_path / "metrics.csv")

    def facts() -> dict[str, Any]:
        found = figures(world.exp, world, world.initial_state(), table, ())
        return {**found, "epsilon": found["privacy"]["epsilon_pld"]}

    names = ("final_accuracy", "accuracy_auc", "loss_auc", "final_macro_f1", "epsilon")
    assert None not in [facts()[name] for name in names]
    columns = ["test_accuracy", "test_loss", "test_macro_f1", "privacy.epsilon_pld"]
    table.loc[2, columns] = float("nan")
    assert [facts()[name] for name in names] == [None] * 5
    assert facts()["best_accuracy"] == table["test_accuracy"].max()


def test_nothing_is_said_of_own_models_where_none_is_measured(tiny: Callable[..., dict[str, Any]], tmp_path: Path):
    run(tiny(), tmp_path)
    assert [name for name in summary(tmp_path) if name.startswith("final_")] == ["final_accuracy"]


def test_without_noise_no_epsilon_is_finite(tiny: Callable[..., dict[str, Any]], tmp_path: Path):
    words = ("local.batch_size=4", "privacy.epsilon=null", "privacy.noise_multiplier=0")
    run(tiny("algorithm=dp_sgd", *words), tmp_path)
    told = summary(tmp_path)["privacy"]
    assert (told["epsilon_pld"], told["epsilon_rdp"], told["noise_multiplier"]) == (None, None, 0)
    assert told["promise"].startswith("Nothing is promised: no noise is added")


def test_who_is_malicious_is_told(tiny: Callable[..., dict[str, Any]], tmp_path: Path):
    run(tiny("attack=zero", "scenario.malicious=2", "aggregator=fedavg"), tmp_path / "attacked")
    malicious, clients = summary(tmp_path / "attacked")["malicious_clients"], summary(tmp_path / "attacked")["clients"]
    assert len(set(malicious)) == 2
    assert set(malicious) <= set(range(clients))
    run(tiny(), tmp_path / "peace")
    assert summary(tmp_path / "peace")["malicious_clients"] is None


def test_nothing_is_said_where_nothing_is_promised(tiny: Callable[..., dict[str, Any]], tmp_path: Path):
    run(tiny(), tmp_path)
    assert summary(tmp_path)["privacy"] is None


@pytest.mark.parametrize("option", ["client_local", "client_central"])
def test_every_promise_has_its_terms(tiny: Callable[..., dict[str, Any]], tmp_path: Path, option: str):
    words = ("privacy.clip=1", "privacy.noise_multiplier=2", "privacy.delta=1e-3", "aggregator.weighting=uniform")
    run(tiny(f"privacy={option}", *words), tmp_path)
    told = summary(tmp_path)["privacy"]
    assert (told["delta"], told["noise_multiplier"]) == (1e-3, 2)
    assert 0 < told["epsilon_pld"] <= told["epsilon_rdp"]
