from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from composing import config
from stages import Stage, play

from fedexp.core import part as spec
from fedexp.core.client_resources import Resources
from fedexp.core.values import SERVER
from fedexp.parts.selector.hybridfl import HybridFL
from fedexp.run.run import run
from fedexp.simulation import context


def machines(update: list[float], upload: list[float]) -> Resources:
    return Resources(1 / np.array(upload), np.ones(len(update)), np.array(update), 1e6)


@pytest.fixture
def stage() -> Stage:
    """Clients 0 and 1 hold class 0, clients 2 and 3 class 1; all send in 2 s; client 3 trains long."""
    return Stage(
        np.full(4, 10),
        machines=machines([1, 2, 3, 40], [2, 2, 2, 2]),
        counts=np.array([[10, 0], [10, 0], [0, 10], [0, 10]]),
        permits=np.array([0.9, 0.9, 0.9, 0.001]),
        example_bytes=1242,  # with 8 for the label 10,000 bits: 0.02 s at 0.5 Mbit/s
    )


def test_three_rounds_by_hand(stage: Stage):
    short = replace(stage, machines=machines([1, 2, 3, 40], [2, 2, 2, 9]))
    nobody = replace(stage, machines=machines([99, 99, 99, 99], [2, 2, 2, 2]))
    plans = []
    for ctx in (stage, short, nobody):
        plan, memory = HybridFL(candidates=4, round_s=20.0).choose({}, ctx.ctx)
        plans.append((plan, memory["columns"]["uploaded_examples"]))
    # T_inc 5, 6, 7 and variance over mean 5 for a single client: 0 comes first. Then 2 makes the classes even (0),
    # 1 follows; 3 does not fit and permits the upload of its examples
    own = [plan.owner[plan.owner != SERVER].tolist() for plan, _ in plans]
    assert own == [[0, 2, 1], [0, 2, 1], []]
    # until client 0 has trained (1 s) client 3 could send 50 examples of 0.02 s: all its 10; over the slow link of the
    # second round an example takes 0.09 s: 11 could be sent, again all 10; with nobody chosen nothing is sent
    assert [count for _, count in plans] == [10, 10, 0]
    assert plans[0][0].owner.tolist()[-1] == SERVER
    assert sorted(plans[0][0].shards[-1].tolist()) == list(range(300, 310))
    assert plans[2][0].owner.tolist() == []


def test_the_upload_ends_when_the_first_chosen_client_has_trained(stage: Stage):
    quick = replace(stage, machines=machines([0.11, 2, 3, 40], [2, 2, 2, 2]))
    plan, memory = HybridFL(candidates=4, round_s=20.0).choose({}, quick.ctx)
    assert memory["columns"]["uploaded_examples"] == 5  # 0.11 s at 0.02 s an example
    assert memory["columns"]["uploaded_mb"] == pytest.approx(5 * 1250 / 1e6)
    assert len(plan.shards[-1]) == 5


def test_the_upload_may_end_with_the_first_candidate(stage: Stage):
    quick = replace(stage, machines=machines([1, 2, 0.05, 40], [2, 2, 30, 2]))  # 2 is ready first and never fits
    counts = {}
    for until in ("first_chosen", "first_candidate"):
        selector = HybridFL(candidates=4, round_s=20.0, upload_until=until)
        plan, memory = selector.choose({}, quick.ctx)
        assert 2 not in plan.owner
        counts[until] = memory["columns"]["uploaded_examples"]
    assert counts == {"first_chosen": 10, "first_candidate": 2}  # 1 s, or 0.05 s, at 0.02 s an example


@pytest.mark.parametrize("until", ["first_chosen", "first_candidate"])
def test_a_client_without_examples_ends_no_upload(stage: Stage, until: Any):
    """Client 2 has none, is chosen first and trains in no time; client 0 trains 0.11 s, at 0.02 s an example."""
    sizes, counts = np.array([10, 10, 0, 10]), np.array([[10, 0], [10, 0], [0, 0], [0, 10]])
    empty = replace(stage, sizes=sizes, counts=counts, machines=machines([0.11, 2, 0, 40], [2, 2, 2, 2]))
    plan, memory = HybridFL(candidates=4, round_s=20.0, upload_until=until).choose({}, empty.ctx)
    assert plan.owner.tolist()[0] == 2
    assert memory["columns"]["uploaded_examples"] == 5
    nobody = replace(empty, machines=machines([99, 99, 0, 99], [2, 2, 2, 2]))
    plan, memory = HybridFL(candidates=4, round_s=20.0).choose({}, nobody.ctx)
    assert plan.owner.tolist() == [2]
    assert memory["columns"]["uploaded_examples"] == 0


@pytest.mark.law("selector=hybridfl", "clients that are chosen, or do not permit it, send no examples")
def test_who_is_chosen_or_does_not_permit_sends_nothing(stage: Stage):
    everybody_permits = replace(stage, permits=np.zeros(4), machines=machines([1, 1, 1, 1], [2, 2, 2, 2]))
    owners, _ = play(HybridFL(candidates=4, round_s=1e3), [everybody_permits])
    assert SERVER not in owners[0]
    owners, _ = play(HybridFL(candidates=4, round_s=20.0), [replace(stage, permits=np.ones(4))])
    assert SERVER not in owners[0]


def test_client_zero_may_send_too(stage: Stage):
    turned = replace(stage, machines=machines([40, 2, 3, 1], [2, 2, 2, 2]), permits=np.array([0.001, 0.9, 0.9, 0.9]))
    plan, _ = HybridFL(candidates=4, round_s=20.0).choose({}, turned.ctx)
    assert sorted(plan.shards[-1].tolist()) == list(range(10))


def test_the_server_counts_as_one_more_participant(tiny, tmp_path):
    import pandas as pd

    run(
        tiny(
            "selector=hybridfl", "fleet=simulated", "selector.round_s=0.9", "selector.upload_permission=1", "rounds=4"
        ),
        tmp_path,
    )
    clients, metrics = pd.read_csv(tmp_path / "clients.csv"), pd.read_csv(tmp_path / "metrics.csv")
    server = clients[clients["client"] == SERVER]
    assert len(server)
    uploaded = dict(zip(metrics["round"], metrics["selector.uploaded_examples"], strict=True))
    assert server["examples"].tolist() == [uploaded[number] for number in server["round"]]
    participants = clients[clients["client"] >= 0].groupby("round").size()
    assert participants.tolist() == metrics["participants"].tolist()


@pytest.mark.parametrize(("dataset", "expected", "within"), [("mnist", 74.0, 2.0), ("cifar10", 4.4, 0.3)])
def test_as_many_participants_as_published(dataset: str, expected: float, within: float, real_data):
    from fedexp.simulation.build_world import build_world
    from fedexp.training.workers.pool import WorkerPool

    words = (f"experiment=resources_{dataset}", "selector=hybridfl", "partition=thesis", f"data_dir={real_data}")
    exp = spec.build(config(*words, "engine=loop", "engine.workers=1"))
    world = build_world(exp, None, WorkerPool())
    memory, counts = {}, []
    for number in range(1, 41):
        plan, memory = exp.selector.choose(memory, context.make_context(world, number))
        counts.append((plan.owner != SERVER).sum())
    assert np.mean(counts) == pytest.approx(expected, abs=within)
