import numpy as np
import pytest
import torch

from fedexp import spec
from fedexp.fleets.simulated import sequential_seconds, truncated_normal
from fedexp.training.workers import Crew
from fedexp.values import Uploads
from fedexp.world import build_world


def test_uploads_queue_behind_the_slowest_trainer_by_hand():
    # trained at 5, sent until 7; trained long ago, sent until 10; trained at 12, sent until 16
    assert sequential_seconds(np.array([5.0, 1.0, 12.0]), np.array([2.0, 3.0, 4.0])) == 16.0
    assert sequential_seconds(np.zeros(0), np.zeros(0)) == 0.0


def test_truncated_normal_has_the_bounds_and_the_moments():
    uniform = np.random.default_rng(0).random(200_000)
    draws = truncated_normal(uniform, np.full(200_000, 10.0), 0.1, 0.2)
    assert draws.min() >= 8
    assert draws.max() <= 12
    assert draws.mean() == pytest.approx(10, abs=0.01)
    assert draws.std() == pytest.approx(0.8796, abs=0.01)  # a standard normal cut at +-2 has std 0.8796
    assert truncated_normal(uniform[:2], np.array([3.0, 4.0]), 0.0, 0.2).tolist() == [3.0, 4.0]


def test_a_round_of_the_mnist_mlp_by_hand(tiny):
    world = build_world(
        spec.build(tiny("fleet=simulated", "fleet.jitter_std=0", "dataset.shape=[784]", "fleet.speed_high=10")),
        None,
        Crew(),
    )
    owner = np.array([0, 2])
    uploads = Uploads(owner, owner * 0, np.array([20, 20]), torch.zeros(2, 1), owner * 1.0, owner * 1.0)
    _, seconds, memory = world.exp.fleet.deliver(uploads, {}, world.at(1))
    link = 101_770 * 32 / 1.4e6  # 2.33 s
    assert seconds == pytest.approx(link + (20 / 10 + link) + link)
    assert memory["columns"]["seconds"] == seconds


def test_a_client_is_equally_fast_whoever_else_takes_part(tiny):
    world = build_world(spec.build(tiny("fleet=simulated", "local.epochs=9")), None, Crew())

    def alone(client: int, number: int) -> float:
        owner = np.array([client])
        uploads = Uploads(owner, owner * 0, np.array([500]), torch.zeros(1, 1), owner * 1.0, owner * 1.0)
        return world.exp.fleet.deliver(uploads, {}, world.at(number))[1]

    speeds = [[4500 / alone(client, number) for number in (1, 2, 3)] for client in range(4)]
    for drawn in speeds:
        assert max(drawn) / min(drawn) <= 1.2 / 0.8 + 1e-9
        assert len(set(drawn)) == 3
    assert len({round(np.mean(drawn)) for drawn in speeds}) > 1
    assert alone(1, 2) == alone(1, 2)
