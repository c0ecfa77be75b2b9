"""What a run is called follows from its config; a name that is only recorded beside it must fit."""

from typing import Any

import pytest

from fedexp.config.option_names import option_names

RANDOM = {"selector": {"_target_": "fedexp.parts.selector.random.Random"}}
PROX = {"local": {"_target_": "fedexp.parts.local.prox.Prox"}}


@pytest.mark.parametrize(
    ("written", "recorded", "names"),
    [
        (RANDOM, {"selector": "greedyfed"}, {"selector": "random"}),
        (RANDOM, {}, {"selector": "random"}),
        (RANDOM, {"method": "greedyfed", "experiment": "greedyfed"}, {"selector": "random"}),  # no such bundles
        (RANDOM, {"algorithm": "../selector/greedyfed"}, {"selector": "random"}),
        ({"selector": {"_target_": "my.parts.Mine"}}, {"selector": "greedyfed"}, {"selector": "parts"}),
        ({"selector": {}}, {"selector": "random"}, {"selector": "random"}),  # nothing tells another
        ({}, {"fleet": "none", "hydra/output": "default"}, {"fleet": "none", "hydra/output": "default"}),
        (PROX, {"algorithm": "fedprox"}, {"local": "prox", "algorithm": "fedprox"}),
        (PROX, {"algorithm": "fedavg"}, {"local": "prox"}),
        (PROX | RANDOM, {"algorithm": "scaffold"}, {"local": "prox", "selector": "random"}),
    ],
)
def test_names_are_those_of_the_config(written: dict[str, Any], recorded: dict[str, str], names: dict[str, str]):
    assert option_names(written, recorded) == names


def test_of_two_options_with_one_class_the_values_tell():
    step = {"_target_": "fedexp.parts.local.sgd.SGD", "epochs": 1, "batch_size": "full", "order": "file", "lr": 0.5}
    assert option_names({"local": step}, {"local": "sgd"}) == {"local": "full_batch_step"}
    epochs = {"_target_": "fedexp.parts.local.sgd.SGD", "epochs": "${scenario.local_epochs}", "batch_size": 20}
    assert option_names({"local": epochs}, {"local": "full_batch_step"}) == {"local": "sgd"}


def test_a_part_inside_of_another_has_the_option_that_its_class_tells():
    component = {"_target_": "fedexp.parts.model.mlp.MLP", "hidden": [8]}
    written = {"model": {"_target_": "fedexp.parts.model.mixture.Mixture", "components": 2, "component": component}}
    recorded = {"model": "mixture", "model@model.component": "lenet"}
    assert option_names(written, recorded) == {"model": "mixture", "model@model.component": "mlp"}
    assert option_names({"model": component}, recorded) == {"model": "mlp"}


def test_another_list_of_layers_is_another_network():
    node = {"_target_": "fedexp.parts.model.chain.Chain", "buffers": "average", "init": "default", "last_layer": None}
    assert option_names({"model": {**node, "layers": ["flatten", "linear"]}}, {}) == {"model": "logistic"}
    assert option_names({"model": {**node, "layers": ["flatten", "relu", "linear"]}}, {"model": "lenet"}) == {
        "model": "chain"
    }
