"""Models on validation data: the server's, or what clients set apart."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from worlds import world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import State
from fedexp.run.run import run
from fedexp.simulation.measures import validation
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]
ASKED = ("evaluation.validation=true", "evaluation.validation_fraction=0.25")
AT_CLIENTS = (*ASKED, "evaluation.validation_at=clients")
HELD = "evaluation.personal_fraction=0.2"


def after_two_rounds(tiny: Tiny, *words: str) -> tuple[World, State]:
    world = world_of(tiny(*AT_CLIENTS, "rounds=2", "engine.workers=1", *words))
    return world, [state for state, _, _ in run_rounds(world.exp, world, world.initial_state())][-1]


def scores_by_hand(world: World, row: torch.Tensor, client: int) -> tuple[float, float]:
    """Loss and accuracy of a row on what a client set apart."""
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).eval()
    network.load_state_dict(world.layout.views(row.clone()), strict=False)
    place = torch.from_numpy(world.client_validation.shard(client))
    outputs, labels = network(world.train.inputs(place)).detach(), world.train.y[place].long()
    loss = torch.nn.functional.cross_entropy(outputs, labels)
    return float(loss), float((outputs.argmax(dim=1) == labels).double().mean())


class TestWhoHasWhat:
    def test_clients_set_a_quarter_apart_and_the_server_has_none(self, tiny: Tiny):
        world = world_of(tiny(*AT_CLIENTS, HELD))
        parts = (world.partition, world.held_out, world.client_validation)
        assert [part.sizes.tolist() for part in parts] == [[12] * 6, [4] * 6, [4] * 6]
        assert sorted(np.concatenate([part.indices for part in parts])) == list(range(120))
        assert world.validation is None
        assert world.validation_size == 24

    def test_what_is_held_out_for_the_result_is_the_same_as_without(self, tiny: Tiny):
        world, without = world_of(tiny(*AT_CLIENTS, HELD)), world_of(tiny(HELD))
        assert world.held_out.indices.tolist() == without.held_out.indices.tolist()
        assert not len(without.client_validation.indices)
        assert without.validation_size == 0

    @pytest.mark.parametrize("asks", ["stop=patience", "evaluation.validation=true"])
    def test_it_is_set_apart_only_if_somebody_asks(self, tiny: Tiny, asks: str):
        assert world_of(tiny("evaluation.validation_at=clients", asks)).validation_size == 12
        assert world_of(tiny("evaluation.validation_at=clients")).validation_size == 0

    def test_malicious_clients_with_copies_have_none(self, tiny: Tiny):
        words = ("scenario.malicious=2", "scenario.malicious_hold_data=false", "attack=sign_flip")
        world = world_of(tiny(*AT_CLIENTS, *words))
        assert world.client_validation.sizes[world.malicious].tolist() == [0, 0]
        assert world.client_validation.sizes.tolist().count(7) == 4

    def test_clients_of_one_example_each_are_refused(self, tiny: Tiny):
        with pytest.raises(
            ConfigError, match="needs an honest client with at least two examples to train on, got none"
        ):
            world_of(tiny(*AT_CLIENTS, "federation=iid", "scenario.clients=120"))

    def test_clients_that_are_all_malicious_are_refused(self, tiny: Tiny):
        with pytest.raises(ConfigError, match="needs an honest client"):
            world_of(tiny(*AT_CLIENTS, "scenario.malicious=6", "attack=sign_flip"))


class TestScores:
    @pytest.mark.parametrize("method", ["fedavg", "fedper", "ditto"])
    def test_they_are_means_over_clients_of_the_model_that_each_uses(self, tiny: Tiny, method: str):
        world, state = after_two_rounds(tiny, f"algorithm={method}")
        scores = validation.score(world.exp, world, state)
        rows = personal_models(world.exp, world, state, np.arange(6))
        by_hand = np.mean([scores_by_hand(world, row, client) for client, row in enumerate(rows)], axis=0)
        assert (scores.loss, scores.metrics["accuracy"]) == pytest.approx(tuple(by_hand), rel=1e-6)
        global_row = state.models[0].flat
        assert (method == "fedavg") == all(torch.equal(row, global_row) for row in rows)

    def test_every_client_counts_alike_and_the_malicious_do_not(self, tiny: Tiny):
        words = ("federation=dirichlet", "federation.alpha=1", "scenario.malicious=2", "attack=sign_flip")
        world, state = after_two_rounds(tiny, *words)
        honest = np.setdiff1d(np.flatnonzero(world.client_validation.sizes), world.malicious)
        assert len(set(world.client_validation.sizes[honest].tolist())) > 1
        by_hand = [scores_by_hand(world, state.models[0].flat, client)[1] for client in honest.tolist()]
        assert validation.score(world.exp, world, state).metrics["accuracy"] == pytest.approx(np.mean(by_hand))

    def test_on_the_server_they_are_the_global_model_s(self, tiny: Tiny):
        world = world_of(tiny(*ASKED, "engine.workers=1"))
        state = world.initial_state()
        assert world.validation is not None
        expected = world.scorer.score(state.models[0], world.validation, world.scorer.metric_set)
        assert validation.score(world.exp, world, state).metrics == expected.metrics

    @pytest.mark.parametrize("training", ["local", "central"])
    def test_clients_alone_and_pooled_data_are_measured_where_the_examples_are_from(self, tiny: Tiny, training: str):
        world, state = after_two_rounds(tiny, f"scenario.training={training}")
        rows = personal_models(world.exp, world, state, np.arange(6))
        by_hand = [scores_by_hand(world, row, client)[1] for client, row in enumerate(rows)]
        assert validation.score(world.exp, world, state).metrics["accuracy"] == pytest.approx(np.mean(by_hand))


PRIVATE = ("privacy=client_central", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-5")


def test_a_stop_rule_that_looks_at_clients_is_refused_where_they_are_promised_privacy(tiny: Tiny):
    words = (*PRIVATE, "aggregator.weighting=uniform", "stop=patience")
    compatibility.refuse(spec.build(tiny(*words)))
    compatibility.refuse(spec.build(tiny(*words[:-1], *AT_CLIENTS)))
    with pytest.raises(ConfigError, match=r"stop=patience ends the run by how .*; use evaluation.validation_at=null"):
        compatibility.refuse(spec.build(tiny(*words, *AT_CLIENTS)))


def test_models_are_tuned_first_if_that_is_asked_for(tiny: Tiny):
    world, state = after_two_rounds(tiny, "evaluation.fine_tune_epochs=2")
    rows = personal_models(world.exp, world, state, np.arange(6))
    assert not torch.equal(rows[0], state.models[0].flat)
    by_hand = [scores_by_hand(world, row, client)[0] for client, row in enumerate(rows)]
    assert validation.score(world.exp, world, state).loss == pytest.approx(np.mean(by_hand), rel=1e-6)


def test_the_table_has_them_and_workers_change_nothing(tiny: Tiny, tmp_path: Path):
    columns = ["validation_loss", "validation_accuracy", "personal_accuracy"]
    tables = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        run(tiny(*AT_CLIENTS, HELD, "algorithm=ditto", "rounds=3", f"engine.workers={workers}"), folder)
        tables.append(pd.read_csv(folder / "metrics.csv")[columns])
    assert tables[0].equals(tables[1])
    assert tables[0].notna().to_numpy().all()
