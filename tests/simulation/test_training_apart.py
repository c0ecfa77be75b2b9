"""Clients that train alone, and one that trains on the examples of all."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.core import part as spec
from fedexp.core.values import Jobs, Weights
from fedexp.files import summary_json
from fedexp.parts.federation.partition import Partition
from fedexp.run.run import run
from fedexp.simulation import context
from fedexp.simulation.measures import client_scores, own_models, server_data
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.work import work
from fedexp.simulation.world import World

HELD = "evaluation.personal_fraction=0.2"
LOCAL, CENTRAL = ("algorithm=local", HELD), ("algorithm=central", HELD)


def trained_alone(world: World, client: int) -> torch.Tensor:
    """The row of a client that trains on its own data in every round, and goes on from what it had."""
    row = world.first.flat
    for number in range(1, world.exp.rounds + 1):
        ctx = context.make_context(world, number)
        plan, zero = ctx.plan(np.array([client])), np.zeros(1, np.int64)
        models = (Weights(row, world.layout),)
        jobs = Jobs(
            plan.owner, plan.shards, None, None, model=zero, begun=zero + number, sent=lambda _, models=models: models
        )
        row = row + work(world.exp, world, jobs, {}, ctx)[0].delta[0]
    return row


def accuracy(world: World, row: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> float:
    return float((world.scorer.logits(Weights(row, world.layout), x).argmax(dim=1) == y).double().mean())


class TestLocal:
    @pytest.mark.law("algorithm=local", "every client ends with the model of its own examples alone")
    @pytest.mark.parametrize("local", ["local=sgd", "local=adam"])
    def test_each_has_the_model_of_its_own_data_alone(self, tiny: Tiny, local: str):
        world, plain = world_of(tiny(*LOCAL, local)), world_of(tiny("selector=all", local, HELD))
        *_, (state, _, _) = rounds_with_rows(world)
        rows = own_models.personal_models(world.exp, world, state, np.arange(world.partition.clients))
        for client in range(world.partition.clients):
            torch.testing.assert_close(rows[client], trained_alone(plain, client))
        assert len({tuple(row.tolist()) for row in rows}) == world.partition.clients

    @pytest.mark.law("algorithm=local", "nothing is sent, and the global model keeps its first bytes")
    def test_nothing_is_sent_and_no_global_model_moves(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL))
        for state, row, _ in rounds_with_rows(world):
            assert torch.equal(state.models[0].flat, world.first.flat)
            assert (row["mb_up"], row["mb_down"]) == (0, 0)

    def test_what_is_told_of_test_data_is_the_mean_of_their_own_models(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL, "evaluation.validation=true"))
        *_, (state, row, _) = run_rounds(world.exp, world, world.initial_state())
        rows = own_models.personal_models(world.exp, world, state, np.arange(world.partition.clients))
        for kind, examples in (("test", world.test), ("validation", world.validation)):
            assert examples is not None
            inputs = examples.inputs(slice(0, len(examples)))
            each = [accuracy(world, own, inputs, examples.y) for own in rows]
            assert row[f"{kind}_accuracy"] == pytest.approx(sum(each) / len(each))
        lines = client_scores.score_rows(world.exp, world, state)
        assert [line["global"] for line in lines] == [None] * len(lines)
        assert row["test_accuracy"] == pytest.approx(np.mean([line["test"] for line in lines]))
        assert row["personal_accuracy"] == pytest.approx(np.mean([line["personal"] for line in lines]))

    @pytest.mark.parametrize(
        ("words", "again", "after_a_kill"), [(LOCAL, 0, 2), (("algorithm=fine_tuned_fedavg", HELD), 1, 2)]
    )
    def test_the_last_table_scores_no_own_model_again(
        self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], again: int, after_a_kill: int
    ):
        """The global model, yes; and all where a run was killed behind its last round, with the same values."""
        world, scored = world_of(tiny(*words)), []
        *_, (state, _, _) = run_rounds(world.exp, world, world.initial_state())
        score = world.scorer.score
        monkeypatch.setattr(world.scorer, "score", lambda *arguments: scored.append(arguments) or score(*arguments))
        lines, of_whole_run = client_scores.score_rows(world.exp, world, state), len(scored)
        assert lines == client_scores.score_rows(world.exp, world, replace(state))
        clients = world.partition.clients
        assert (of_whole_run, len(scored) - of_whole_run) == (again * clients, after_a_kill * clients)

    def test_of_many_clients_a_sample_is_scored(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL, "evaluation.personal_clients=2"))
        assert len(server_data.alone_clients(world.exp, world)) == 2

    def test_workers_give_the_same_bytes(self, tiny: Tiny, tmp_path: Path):
        """A worker has ended by the time the last table is written."""
        tables = []
        for workers in (1, 2):
            config = tiny(*LOCAL, f"engine.workers={workers}", "pictures=false")
            run(config, tmp_path / str(workers), spec.build(config))
            table = pd.read_csv(tmp_path / str(workers) / "metrics.csv")
            tables.append(table[["test_accuracy", "test_loss", "personal_accuracy"]])
        pd.testing.assert_frame_equal(*tables)
        texts = [(tmp_path / name / "client_scores.csv").read_text() for name in ("1", "2")]
        assert texts[0] == texts[1]
        assert texts[0].startswith("client,metric,examples,global,personal,test\n")


class TestCentral:
    def test_a_pool_by_hand(self):
        partition = Partition(np.array([0, 2, 3]), np.array([1, 4, 0]), np.array([5]))
        pooled = partition.pool()
        assert (pooled.offsets.tolist(), pooled.indices.tolist(), pooled.server.tolist()) == ([0, 3], [0, 1, 4], [5])

    def test_one_trains_on_what_all_hold_and_the_sites_stay(self, tiny: Tiny):
        world, plain = world_of(tiny(*CENTRAL)), world_of(tiny(HELD))
        assert world.partition.indices.tolist() == sorted(plain.partition.indices.tolist())
        assert (world.partition.clients, world.sites.clients) == (1, plain.partition.clients)
        assert world.sites.sha256() == plain.partition.sha256()
        for client in range(plain.partition.clients):
            assert world.held_out.shard(client).tolist() == plain.held_out.shard(client).tolist()

    @pytest.mark.law(
        "algorithm=central", "it is the model of a federation of one client that holds everything, to the byte"
    )
    def test_it_is_the_model_of_the_federation_of_one(self, tiny: Tiny):
        """With nothing held out both train on all examples, in the same order."""
        whole = "evaluation.personal_fraction=0"
        worlds = [world_of(tiny(*words, whole)) for words in (CENTRAL[:1], ["federation=central", "selector=all"])]
        pooled, central = ([state.models[0].flat for state, _, _ in rounds_with_rows(world)][-1] for world in worlds)
        assert torch.equal(pooled, central)

    def test_nothing_is_sent(self, tiny: Tiny):
        world = world_of(tiny(*CENTRAL))
        assert [(row["mb_up"], row["mb_down"]) for _, row, _ in rounds_with_rows(world)] == [(0, 0)] * world.exp.rounds

    def test_the_model_is_measured_at_every_site(self, tiny: Tiny):
        world = world_of(tiny(*CENTRAL))
        *_, (state, row, _) = run_rounds(world.exp, world, world.initial_state())
        each = []
        for client in range(world.sites.clients):
            index = torch.from_numpy(world.held_out.shard(client))
            each.append(accuracy(world, state.models[0].flat, world.train.inputs(index), world.train.y[index]))
        assert row["personal_accuracy"] == pytest.approx(np.mean(each))
        assert row["personal_worst_decile"] == pytest.approx(min(each))
        lines = client_scores.score_rows(world.exp, world, state)
        assert [line["global"] for line in lines] == pytest.approx(each)
        assert [line["personal"] for line in lines] == pytest.approx(each)

    def test_rules_that_remember_remember_one_client(self, tiny: Tiny):
        """Fed+ keeps a model for the only client, which is that of every site."""
        world = world_of(tiny("algorithm=fedplus", "scenario.training=central"))
        *_, (state, _, _) = rounds_with_rows(world)
        rows = own_models.personal_models(world.exp, world, state, np.arange(world.sites.clients))
        assert torch.equal(rows, rows[:1].expand_as(rows))
        assert not torch.equal(rows[0], world.first.flat)

    def test_files_tell_of_the_sites(self, tiny: Tiny, tmp_path: Path):
        for name, words in (("central", CENTRAL), ("plain", [HELD])):
            config = tiny(*words, "pictures=false", "rounds=1")
            run(config, tmp_path / name, spec.build(config))
        summaries = [summary_json.read(tmp_path / name) or {} for name in ("central", "plain")]
        assert summaries[0]["split_sha256"] == summaries[1]["split_sha256"]
        tables = [(tmp_path / name / "federation.csv").read_bytes() for name in ("central", "plain")]
        assert tables[0] == tables[1]
        assert pd.read_csv(tmp_path / "central" / "clients.csv")["client"].tolist() == [0]
