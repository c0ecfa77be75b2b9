"""Arrivals, queue and joining, as clusters.csv tells them; what crosses the network."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from groups import GROUPED, SIMILAR

from fedexp.core import part as spec
from fedexp.core.values import State
from fedexp.run.run import run
from fedexp.simulation import context
from fedexp.simulation.build_world import build_world
from fedexp.simulation.rounds import run_rounds
from fedexp.training.workers.pool import WorkerPool

LATE = "clustering.arrivals=[1:2,3:1]"


def events(states: list[State], *kinds: str) -> list[tuple[Any, ...]]:
    every = [event for state in states for event in state.memory["clustering"]["events"]]
    return [event for event in every if event[1] in kinds or not kinds]


def trained(states: list[State]) -> dict[int, int]:
    """The first round in which each client trained."""
    first: dict[int, int] = {}
    for number, _, client, _, _ in events(states, "model"):
        first.setdefault(client, number)
    return first


def test_the_first_clients_pass_through_the_queue_before_round_1(live: Any):
    world, states, lines = live(*SIMILAR, "rounds=1")
    told = events(states)
    before = [event for event in told if event[0] == 0]
    assert [client for _, what, client, _, _ in before if what == "server_model"] == list(range(12))
    assert [client for _, what, client, _, _ in before if what == "queue"] == list(range(12))
    births = [(client, cluster) for _, what, client, cluster, _ in before if what == "birth"]
    assert [cluster for _, cluster in births] == [1, 2, 3]
    queue = {client: (cluster, distance) for _, what, client, cluster, distance in before if what == "queue"}
    for client, (cluster, distance) in queue.items():
        assert (distance is None) == ((client, cluster) in births)
        assert distance is None or 0 < distance < 1.4
    joined = {client: cluster for _, _, client, cluster, _ in events(states, "join")}
    assert joined == {client: cluster for client, (cluster, _) in queue.items()}
    assert lines[0]["participants"] == 12
    assert lines[0]["clustering.queue_rounds"] == 1.0
    model = world.exp.clustering.model_of(np.arange(12), states[0].memory["clustering"])
    assert dict(enumerate(model.tolist())) == joined


def test_who_arrives_in_a_round_trains_first_in_the_next_in_the_right_cluster(live: Any):
    world, states, lines = live(*SIMILAR, LATE, "rounds=5")
    order = context.make_context(world, 0).run_rng("arrivals").permutation(12).tolist()
    late = {order[9]: 1, order[10]: 1, order[11]: 3}
    assert trained(states) == {client: late.get(client, 0) + 1 for client in range(12)}
    arrived = [(number, client) for number, _, client, _, _ in events(states, "server_model")]
    assert arrived == [(late.get(client, 0), client) for client in order]
    assert [line["clustering.waiting"] for line in lines] == [2, 0, 1, 0, 0]
    assert [line["clustering.queue_rounds"] for line in lines] == [1.0, 1.0, None, 1.0, None]
    assert [line["participants"] for line in lines] == [9, 11, 11, 12, 12]
    assert [line["clustering.agreement"] for line in lines] == [1.0] * 5


def test_a_cluster_may_be_known_by_its_model(live: Any):
    """A founder's answers stay; the model's become surer, and the last client is farther from them."""
    words = (*SIMILAR, "clustering.arrivals=[5:1]", "rounds=5")
    distance = {}
    for known in ("founder", "model"):
        _, states, _ = live(*words, f"clustering.compared_with={known}", "clustering.threshold=20")
        first, *_, last = (state.memory["clustering"]["references"] for state in states)
        assert torch.equal(first, last) == (known == "founder")
        distance[known] = events(states[-1:], "queue")[0][4]
    assert distance["model"] > distance["founder"]


def test_a_rate_brings_clients_one_by_one(live: Any):
    _, states, lines = live(*SIMILAR, "clustering.rate=2", "rounds=12")
    assert [number for number, *_ in events(states, "server_model")].count(0) == 1
    assert lines[0]["participants"] == 1
    assert trained(states).keys() == set(range(12))
    assert lines[-1]["clustering.agreement"] == 1.0
    came = {client: number for number, _, client, _, _ in events(states, "server_model")}
    assert trained(states) == {client: number + 1 for client, number in came.items()}


def test_of_each_queue_so_many_are_admitted(live: Any):
    _, states, lines = live(*SIMILAR, "clustering.admitted=1", "rounds=6")
    for state in states:
        joined = [cluster for _, _, _, cluster, _ in events([state], "join")]
        assert len(set(joined)) == len(joined)
    assert [line["participants"] for line in lines] == np.cumsum([len(events([s], "join")) for s in states]).tolist()
    waits = {cluster: [] for cluster in (1, 2, 3)}
    for _, _, client, cluster, _ in events(states, "queue"):
        waits[cluster].append(client)
    joined = {cluster: [c for _, _, c, own, _ in events(states, "join") if own == cluster] for cluster in waits}
    assert joined == waits
    for number, line in enumerate(lines[: max(map(len, waits.values()))], start=1):
        assert line["clustering.queue_rounds"] == number
        assert line["clustering.waiting"] == sum(max(0, len(queue) - number) for queue in waits.values())


def test_everyone_may_come_later(live: Any):
    """Round 1 has neither clusters nor participants; nothing moves."""
    world, states, lines = live(*SIMILAR, "clustering.arrivals=[1:12]", "rounds=2")
    assert [line["participants"] for line in lines] == [0, 12]
    assert lines[0]["clustering.clusters"] == 0
    assert torch.equal(states[0].models[0].flat, world.first.flat)
    assert lines[1]["clustering.agreement"] == 1.0


def test_a_part_of_each_cluster_takes_part(live: Any):
    _, states, lines = live(*SIMILAR, "clustering.take=0.5", "rounds=3")
    memory = states[-1].memory["clustering"]
    sizes = np.bincount(memory["cluster"].numpy())[1:]
    for state, line in zip(states, lines, strict=True):
        taking = [cluster for _, _, _, cluster, _ in events([state], "model")]
        assert np.bincount(taking)[1:].tolist() == np.ceil(sizes / 2).tolist()
        assert line["participants"] == len(taking)
    assert len({tuple(client for _, _, client, _, _ in events([state], "model")) for state in states}) > 1


def test_a_cluster_that_nobody_takes_part_in_rests(live: Any):
    words = (*SIMILAR, "scenario.participants=1", "server_optimizer=momentum", "rounds=4")
    _, states, _ = live(*words)
    for before, after in pairwise(states):
        (taking,) = [cluster for _, _, _, cluster, _ in events([after], "model")]
        for number in (1, 2, 3):
            same = torch.equal(before.models[number].flat, after.models[number].flat)
            assert same == (number != taking)


def test_a_new_cluster_begins_with_the_server_s_model_or_its_founder_s(live: Any):
    words = (*SIMILAR, "scenario.participants=1", "rounds=1")
    for begins in ("server", "founder"):
        world, states, _ = live(*words, f"clustering.begins_with={begins}")
        (state,) = states
        (taking,) = [cluster for _, _, _, cluster, _ in events(states, "model")]
        founders = {cluster: client for _, _, client, cluster, _ in events(states, "birth")}
        for cluster, founder in founders.items():
            if cluster != taking:
                made = context.make_context(world, 1).clients_data.fine_tune(
                    world.first.flat, np.array([founder]), 0, None
                )[0]
                wanted = made if begins == "founder" else world.first.flat
                assert torch.equal(state.models[cluster].flat, wanted)
                assert torch.equal(state.memory["clustering"]["references"][cluster - 1], made)


def test_the_global_model_is_the_clusters_or_stays_the_server_s(live: Any):
    world, states, _ = live(*SIMILAR, "rounds=1")
    memory, sizes = states[0].memory["clustering"], world.partition.sizes
    examples = [sizes[memory["owner"].numpy()[memory["cluster"].numpy() == one]].sum() for one in (1, 2, 3)]
    rows = torch.stack([n * w.flat.double() for n, w in zip(examples, states[0].models[1:], strict=True)])
    mean = rows.sum(dim=0) / sum(examples)
    torch.testing.assert_close(states[0].models[0].flat, mean.float())
    world, states, _ = live(*SIMILAR, "clustering.global_model=server", "rounds=2")
    assert torch.equal(states[-1].models[0].flat, world.first.flat)


def test_messages_are_linear_in_rounds(live: Any):
    """Each newcomer gets a model and sends one back, and so does each participant of each round."""
    world, _, lines = live(*SIMILAR, LATE, "rounds=6")
    row = world.layout.size * 4 / 1e6
    newcomers = np.array([9 + 2, 0, 1, 0, 0, 0])
    assert [line["clustering.messages"] for line in lines] == (
        2 * (newcomers + [line["participants"] for line in lines])
    ).tolist()
    for count, line in zip(newcomers, lines, strict=True):
        assert line["clustering.mb"] == pytest.approx(2 * count * row)
        assert line["mb_down"] + line["mb_up"] == pytest.approx(line["clustering.messages"] * row)
        assert line["mb_down"] == line["mb_up"]
    later = [line["mb_down"] + line["mb_up"] for line in lines[3:]]
    assert later == pytest.approx([24 * row] * 3)


def test_newcomers_keep_their_personal_layer_to_themselves(live: Any):
    world, states, lines = live(*SIMILAR, "clustering.begins_with=founder", "local=personal_layer", "rounds=2")
    kept = torch.from_numpy(world.exp.local.private_columns(world.layout))
    rows = context.make_context(world, 1).clients_data.fine_tune(world.first.flat, np.arange(3), 0, None)
    assert torch.equal(rows[:, kept], world.first.flat[kept].expand(3, -1))
    assert not torch.equal(rows[0], world.first.flat)
    references = states[-1].memory["clustering"]["references"]
    for row in (*(weights.flat for weights in states[-1].models), *references):
        assert torch.equal(row[kept], world.first.flat[kept])
    assert lines[0]["clustering.mb"] == pytest.approx(24 * (world.layout.size - len(kept)) * 4 / 1e6)


def test_epochs_of_the_first_training_are_its_own(live: Any):
    world, _, _ = live(*SIMILAR, "rounds=1")
    first, two = world.first.flat, np.arange(2)
    usual, longer = (
        context.make_context(world, 1).clients_data.fine_tune(first, two, 0, epochs) for epochs in (None, 5)
    )
    assert torch.equal(
        usual, context.make_context(world, 1).clients_data.fine_tune(first, two, 0, world.exp.local.epochs)
    )
    assert ((longer - first).norm(dim=1) > (usual - first).norm(dim=1)).all()
    alone = context.make_context(world, 1).clients_data.fine_tune(first, two[1:], 0, None)
    assert torch.equal(alone[0], usual[1])


def test_clients_without_examples_join_and_train_nothing(tiny: Any):
    few = ("dataset.train_size=60", "federation=dirichlet", "federation.alpha=0.02", "scenario.public_fraction=0.2")
    world = build_world(spec.build(tiny(*few, *SIMILAR, "scenario.participants=6")), None, WorkerPool())
    empty = np.flatnonzero(world.partition.sizes == 0)
    assert len(empty) > 0
    assert torch.equal(
        context.make_context(world, 1).clients_data.fine_tune(world.first.flat, empty[:1], 0, None)[0], world.first.flat
    )
    states = [state for state, _, _ in run_rounds(world.exp, world, world.initial_state())]
    assert states[-1].memory["clustering"]["owner"].tolist() == list(range(6))
    assert all(weights.flat.isfinite().all() for weights in states[-1].models)


def test_both_engines_and_several_workers_see_the_same(tiny: Any, tmp_path: Path):
    words = (*GROUPED, *SIMILAR, LATE, "evaluation.personal_fraction=0.2", "clustering.take=0.8", "rounds=3")
    tables = {}
    for name, own in {"one": (), "two": ("engine.workers=2",), "stacked": ("engine=stacked",)}.items():
        run(tiny(*words, *own), tmp_path / name)
        tables[name] = pd.read_csv(tmp_path / name / "metrics.csv")
    told = (tmp_path / "one" / "clusters.csv").read_bytes()
    assert (tmp_path / "two" / "clusters.csv").read_bytes() == told
    same = [name for name in tables["one"] if not name.endswith("_s")]
    pd.testing.assert_frame_equal(tables["one"][same], tables["two"][same], check_exact=True)
    pd.testing.assert_frame_equal(tables["one"][same], tables["stacked"][same], atol=0.02)
    one, other = (pd.read_csv(tmp_path / name / "clusters.csv") for name in ("one", "stacked"))
    pd.testing.assert_frame_equal(one, other, atol=1e-3)
    assert list(one.columns) == ["round", "event", "client", "cluster", "distance"]
    assert (np.diff(one["round"]) >= 0).all()
