"""Frozen draws, deadlines, drop-outs, classes of devices."""

import numpy as np
import pytest
import torch
from worlds import world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, Plan, Uploads
from fedexp.parts.fleet.simulated import truncated_normal
from fedexp.simulation import context

LINK = 101_770 * 32 / 1.4e6  # seconds to send the 784-128-10 network at 1.4 Mbit/s: 2.33


def uploads_of(owner: list[int]) -> Uploads:
    clients = np.array(owner, dtype=np.int64)
    ones = np.ones(len(clients))
    return Uploads(clients, clients * 0, clients * 0 + 20, ones, torch.zeros(len(clients), 1), ones, ones)


def plan_of(owner: list[int], deadline_s: float | None = None) -> Plan:
    return Plan(np.array(owner), tuple(np.arange(20) for _ in owner), None, deadline_s)


def test_truncated_normal_has_the_bounds_and_the_moments():
    uniform = np.random.default_rng(0).random(200_000)
    draws = truncated_normal(uniform, np.full(200_000, 10.0), 0.1, 0.2)
    assert draws.min() >= 8
    assert draws.max() <= 12
    assert draws.mean() == pytest.approx(10, abs=0.01)
    assert draws.std() == pytest.approx(0.8796, abs=0.01)  # a standard normal cut at +-2 has std 0.8796
    assert truncated_normal(uniform[:2], np.array([3.0, 4.0]), 0.0, 0.2).tolist() == [3.0, 4.0]


class TestSimulated:
    def test_a_round_of_the_mnist_mlp_by_hand(self, tiny):
        world = world_of(tiny("fleet=simulated", "fleet.jitter_std=0", "dataset.shape=[784]", "fleet.speed_high=10"))
        arrived, seconds, memory = world.exp.fleet.deliver(
            uploads_of([0, 2]), plan_of([0, 2]), {}, context.make_context(world, 1)
        )
        assert seconds == pytest.approx(LINK + (20 / 10 + LINK) + LINK)
        assert memory["columns"] == {"seconds": seconds, "late": 0, "dropped_out": 0}
        assert arrived.owner.tolist() == [0, 2]

    def test_frozen_draws(self, tiny):
        world = world_of(tiny("fleet=simulated"))
        seen = world.exp.fleet.resources(np.array([0, 1, 5]), context.make_context(world, 3))
        assert seen.speed == pytest.approx(GOLDEN_SPEED)
        assert seen.bandwidth == pytest.approx(GOLDEN_BANDWIDTH)

    def test_a_client_is_equally_fast_whoever_else_takes_part(self, tiny):
        world = world_of(tiny("fleet=simulated"))
        fleet, everyone = world.exp.fleet, np.arange(6)
        for number in (1, 2):
            together = fleet.resources(everyone, context.make_context(world, number)).speed
            alone = [
                fleet.resources(np.array([client]), context.make_context(world, number)).speed[0] for client in range(6)
            ]
            assert together.tolist() == alone
        first, second = (fleet.resources(everyone, context.make_context(world, number)).speed for number in (1, 2))
        assert (np.maximum(first, second) / np.minimum(first, second) <= 1.2 / 0.8 + 1e-9).all()
        assert (first != second).all()

    def test_the_clock_advances_without_participants(self, tiny):
        world = world_of(tiny("fleet=simulated", "fleet.overhead_s=2"))
        fleet = world.exp.fleet
        assert fleet.deliver(uploads_of([]), plan_of([]), {}, context.make_context(world, 1))[1] == 182
        assert (
            fleet.deliver(uploads_of([]), plan_of([], 60.0), {}, context.make_context(world, 1))[1] == 60
        )  # overhead included

    def test_the_servers_own_row_takes_no_time_and_always_arrives(self, tiny):
        world = world_of(tiny("fleet=simulated", "fleet.dropout=1.0"))
        arrived, seconds, _ = world.exp.fleet.deliver(
            uploads_of([0, SERVER]), plan_of([0, SERVER]), {}, context.make_context(world, 1)
        )
        alone = world.exp.fleet.deliver(uploads_of([0]), plan_of([0]), {}, context.make_context(world, 1))[1]
        assert arrived.owner.tolist() == [SERVER]
        assert seconds == alone

    def test_clients_drop_out_as_often_as_asked(self, tiny):
        world = world_of(tiny("fleet=simulated", "fleet.dropout=0.3"))
        everyone = list(range(6))
        plan, uploads = plan_of(everyone), uploads_of(everyone)
        lost = 0
        for number in range(1, 201):
            arrived, _, memory = world.exp.fleet.deliver(uploads, plan, {}, context.make_context(world, number))
            lost += 6 - len(arrived.owner)
            assert memory["columns"]["dropped_out"] == 6 - len(arrived.owner)
        assert lost / 1200 == pytest.approx(0.3, abs=0.04)

    def test_the_fleets_deadline_and_the_rounds_own(self, tiny):
        world = world_of(tiny("fleet=simulated", "fleet.deadline_s=0.001"))
        arrived, seconds, memory = world.exp.fleet.deliver(
            uploads_of([0]), plan_of([0], 50.0), {}, context.make_context(world, 1)
        )
        assert (len(arrived.owner), seconds, memory["columns"]["late"]) == (0, 0.001, 1)

    def test_speeds_the_wrong_way_round_are_refused(self, tiny):
        with pytest.raises(ConfigError, match=r"fleet\.speed_high must be at least speed_low=10, got 5"):
            spec.build(tiny("fleet=simulated", "fleet.speed_high=5"))


CLASSES = "fleet.classes=[[0.5,10,1,0.25],[0.3,40,8,2],[0.2,200,50,10]]"


class TestDevices:
    def test_classes_have_their_shares_speeds_and_links(self, tiny):
        words = ("scenario.clients=600", "dataset.train_size=600", "fleet=simulated", "fleet.jitter_std=0", CLASSES)
        world = world_of(tiny(*words))
        seen = world.exp.fleet.resources(np.arange(600), context.make_context(world, 2))
        speed, share = np.unique(seen.speed, return_counts=True)
        assert speed.tolist() == [10, 40, 200]
        assert share / 600 == pytest.approx([0.5, 0.3, 0.2], abs=0.06)
        rows = set(zip(seen.speed.tolist(), seen.bandwidth.tolist(), seen.uplink.tolist(), strict=True))
        assert rows == {(10, 1, 0.25), (40, 8, 2), (200, 50, 10)}
        assert seen.upload_s == pytest.approx(seen.bits / (seen.uplink * 1e6))
        some = seen.where(seen.speed == 40)
        assert set(some.uplink.tolist()) == {2}

    def test_speeds_are_log_normal_around_that_of_the_class(self, tiny):
        words = ("scenario.clients=600", "dataset.train_size=600", "fleet=simulated", "fleet.speed_spread=0.5")
        world = world_of(tiny(*words, "fleet.jitter_std=0", "fleet.classes=[[1,30]]"))
        log_speed = np.log(world.exp.fleet.resources(np.arange(600), context.make_context(world, 1)).speed / 30)
        assert log_speed.mean() == pytest.approx(0, abs=0.07)
        assert log_speed.std() == pytest.approx(0.5, abs=0.05)
        assert (np.abs(log_speed) < 0.5).mean() == pytest.approx(0.683, abs=0.06)
        later = np.log(world.exp.fleet.resources(np.arange(600), context.make_context(world, 9)).speed / 30)
        assert later == pytest.approx(log_speed)

    def test_what_clients_send_has_a_bandwidth_of_its_own(self, tiny):
        words = ("fleet=simulated", "fleet.bandwidth_mbit=4", "fleet.upload_mbit=1", "codec=float16")
        world = world_of(tiny(*words))
        seen = world.exp.fleet.resources(np.arange(6), context.make_context(world, 1))
        assert seen.upload_s == pytest.approx(2 * seen.download_s)  # half as long a message at a quarter of the rate
        assert (
            world_of(tiny("fleet=simulated"))
            .exp.fleet.resources(np.arange(6), context.make_context(world, 1))
            .upload_bandwidth
            is None
        )

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["fleet.classes=[[0.5,10],[0.4,20]]"], r"fleet\.classes must have shares that add up to 1, got 0\.9"),
            (["fleet.classes=[[1,10,3]]"], r"fleet\.classes must be a list of \[share, speed\] or"),
            (["fleet.classes=[]"], r"fleet\.classes must have shares that add up to 1, got 0"),
            (["fleet.classes=[[1,-10]]"], r"fleet\.classes must be"),
            (["fleet.trace=x.csv", "fleet.upload_mbit=2"], r"fleet\.upload_mbit does nothing with trace=x\.csv"),
        ],
    )
    def test_what_cannot_be_is_refused(self, tiny, words: list[str], message: str):
        with pytest.raises(ConfigError, match=message):
            spec.build(tiny("fleet=simulated", *words))


GOLDEN_SPEED = [26.102477, 41.493987, 40.048]
GOLDEN_BANDWIDTH = [1.161042, 1.556848, 1.287169]
