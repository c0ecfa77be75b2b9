"""FedMGDA+ by hand, at its limits, and against the conditions that its weights must meet."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from worlds import Tiny, folded, rounds_with_rows, uploads_like, world_of

from fedexp.maths.rows import distances_to, mix_rows
from fedexp.parts.aggregator.fedmgda import duality_gap, min_norm_weights, nearest_weights, weights_of_moving
from fedexp.simulation.round import run_round
from fedexp.simulation.world import World


def uniform(count: int) -> np.ndarray:
    return np.full(count, 1 / count)


def weights_of(rows: list[list[float]], eps: float, share: list[float] | None = None) -> list[float]:
    unit = np.array(rows)
    return min_norm_weights(unit @ unit.T, uniform(len(unit)) if share is None else np.array(share), eps).tolist()


def test_the_nearest_weights_by_hand():
    low, high = np.zeros(3), np.array([1.0, 0.3, 1.0])
    assert nearest_weights(np.array([0.5, 0.5, 0.0]), low, high) == pytest.approx([0.6, 0.3, 0.1])
    assert nearest_weights(np.array([9.0, 0.0, 0.0]), low, high) == pytest.approx([1, 0, 0])


def test_a_gap_by_hand():
    """From (0, 1/2, 1/2) with slopes 1, 2 and 3, of which the first may have at most 0.4: 2.5 - (0.4 + 1.2)."""
    gap = duality_gap(np.array([0, 0.5, 0.5]), np.array([1.0, 2, 3]), np.zeros(3), np.array([0.4, 1, 1]))
    assert gap == pytest.approx(0.9)


def test_weights_by_hand():
    assert weights_of([[1, 0], [0, 1]], 1) == pytest.approx([0.5, 0.5])
    assert weights_of([[1, 0], [-1, 0]], 0.1, [0.75, 0.25]) == pytest.approx([0.65, 0.35])  # as far as it may go
    assert weights_of([[1, 0], [1, 0], [-1, 0]], 0.1) == pytest.approx([1 / 3 - 0.05, 1 / 3 - 0.05, 1 / 3 + 0.1])
    assert weights_of([[1, 0], [0.6, 0.8]], 0) == [0.5, 0.5]
    assert weights_of([[1, 0], [0, 0.5]], 1) == pytest.approx([0.2, 0.8])  # a^2 + (1 - a)^2 / 4 is least at a = 1/5


@pytest.mark.law("aggregator=fedmgda", "no weights within eps of the shares give a shorter step")
@pytest.mark.law("aggregator=fedmgda", "with eps = 1 the step goes along with every update")
@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**32), st.sampled_from([0.01, 0.1, 0.5, 1.0]))
def test_no_other_weights_are_better(clients: int, width: int, seed: int, eps: float):
    rng = np.random.default_rng(seed)
    unit = rng.normal(size=(clients, width))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    share = rng.dirichlet(np.ones(clients))
    weight = min_norm_weights(unit @ unit.T, share, eps)
    assert weight.sum() == pytest.approx(1)
    assert (np.abs(weight - share) <= eps + 1e-9).all()
    assert (weight >= 0).all()
    step = weight @ unit
    if eps == 1:  # it goes along with every update
        assert (unit @ step >= step @ step - 1e-6).all()
    for _ in range(20):
        other = nearest_weights(rng.normal(size=clients), (share - eps).clip(min=0), (share + eps).clip(max=1))
        assert step @ step <= (other @ unit) @ (other @ unit) + 1e-6


def step_of(world: World, *entries: list[float]) -> tuple[torch.Tensor, dict[str, float]]:
    rows = torch.zeros(len(entries), world.layout.size)
    rows[:, :2] = torch.tensor(entries)
    model, memory = folded(world, uploads_like(rows))
    return model - world.first.flat, memory["aggregator"]["columns"]


@pytest.mark.law("aggregator=fedmgda", "opposed updates give nothing, however long they are")
def test_opposed_updates_give_nothing_however_long(tiny: Tiny):
    world = world_of(tiny("aggregator=fedmgda", "aggregator.eps=0"))
    step, columns = step_of(world, [3.0, 4.0], [-3.0, -4.0])
    assert not step.any()
    assert columns["step_norm"] == pytest.approx(0, abs=1e-15)  # 3 * 0.1 - 3 * 0.1 is not 0 where a core fuses the two
    assert columns["moved"] == 0
    step, _ = step_of(world, [3.0, 4.0], [-0.75, -1.0])
    assert float(step.abs().max()) < 1e-7


def test_a_step_by_hand(tiny: Tiny):
    """Twice to the right and once up: with eps = 1 half of each way, whose length is the root of 1/2."""
    world = world_of(tiny("aggregator=fedmgda", "aggregator.eps=1"))
    step, columns = step_of(world, [5.0, 0.0], [1.0, 0.0], [0.0, 7.0])
    torch.testing.assert_close(step[:2], torch.tensor([0.5, 0.5]), atol=1e-5, rtol=0)
    assert columns["step_norm"] == pytest.approx(0.5**0.5)
    assert columns["moved"] == pytest.approx(1 / 6, abs=1e-4)


@pytest.mark.law("aggregator=fedmgda", "eps = 0 is the mean of the updates at length 1, to the byte")
def test_with_eps_0_it_is_the_mean_of_normalised_updates_to_the_byte(tiny: Tiny):
    world = world_of(tiny("aggregator=fedmgda", "aggregator.eps=0", "federation=dirichlet", "rounds=3"))
    before = world.first.flat
    for state, _, sent in rounds_with_rows(world):
        share = torch.from_numpy(sent.examples / sent.examples.sum())
        mean = mix_rows((1 / distances_to(sent.delta) * share)[None], sent.delta)[0]
        assert torch.equal(state.models[0].flat, before + mean)
        before = state.models[0].flat


def test_buffers_take_the_mean(tiny: Tiny):
    world = world_of(tiny("aggregator=fedmgda", "model=complex_cnn", "dataset.shape=[1,8,8]"))
    parameters = world.layout.parameters
    rows = torch.randn(3, world.layout.size)
    moved = folded(world, uploads_like(rows))[0] - world.first.flat
    torch.testing.assert_close(moved[parameters:], rows[:, parameters:].mean(dim=0), atol=1e-5, rtol=1e-4)


@pytest.mark.law("aggregator=fedmgda", "a step is never longer than the server's rate")
def test_engines_agree_and_the_rate_is_the_length(tiny: Tiny):
    ends = []
    for engine in ("loop", "stacked"):
        world = world_of(tiny("algorithm=fedmgda", "server_optimizer.lr=0.25", "rounds=3", f"engine={engine}"))
        states = [state for state, *_ in rounds_with_rows(world)]
        again, row, _ = run_round(world.exp, world, states[1])
        assert torch.equal(again.models[0].flat, states[2].models[0].flat)
        length = float((again.models[0].flat - states[1].models[0].flat).norm())
        assert length == pytest.approx(0.25 * row["aggregator.step_norm"], rel=1e-4)
        assert row["aggregator.step_norm"] <= 1
        ends.append(states[-1].models[0].flat)
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)


def test_updates_of_no_length_do_not_stop_the_others():
    products = np.diag([1.0, 0.0, 1.0])
    assert weights_of_moving(products, np.full(3, 1 / 3), 1.0) == pytest.approx([0.5, 0, 0.5])
    assert weights_of_moving(0 * products, np.full(3, 1 / 3), 1.0).sum() == pytest.approx(1)
