"""The centre over all clients: its fixed point, its limits, who counts."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from worlds import world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, Uploads, Weights
from fedexp.maths.proximal import Penalty, proximal_residual
from fedexp.parts.aggregator.fedplus_centre import robust_centre
from fedexp.simulation import context
from fedexp.simulation.setup import compatibility

Tiny = Callable[..., dict[str, Any]]
LIMITS = (1e-12, 5000)


def uploads(owner: list[int], delta: torch.Tensor) -> Uploads:
    clients = np.array(owner)
    return Uploads(clients, clients * 0, clients * 0 + 20, clients * 0 + 1.0, delta, clients * 1.0, clients * 0.5)


def rows_of(seed: int, clients: int = 7, entries: int = 5000) -> torch.Tensor:
    return torch.randn(clients, entries, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def even(clients: int) -> torch.Tensor:
    return torch.ones(clients, dtype=torch.float64)


def obvious_geometric_median(rows: torch.Tensor) -> torch.Tensor:
    x = rows.mean(dim=0)
    for _ in range(2000):
        weight = 1 / (rows - x).norm(dim=1)
        x = weight @ rows / weight.sum()
    return x


@pytest.mark.law("aggregator=fedplus_centre", "the centre is the fixed point of the paper's iteration")
@pytest.mark.parametrize(("penalty", "rho"), [("l2", 20.0), ("l2", 60.0), ("l1", 0.3), ("l1", 2.0)])
def test_it_is_the_fixed_point_of_the_papers_iteration(penalty: Penalty, rho: float):
    rows = rows_of(1)
    x, taken = robust_centre(rows, even(7), penalty, rho, LIMITS)
    torch.testing.assert_close(proximal_residual(rows - x, penalty, rho).mean(dim=0), x * 0, atol=1e-9, rtol=0)
    y = rows.mean(dim=0)
    for _ in range(3000):
        y = y + proximal_residual(rows - y, penalty, rho).mean(dim=0)
    torch.testing.assert_close(x, y, atol=1e-6, rtol=0)
    assert taken < LIMITS[1]


def test_three_models_on_a_line_by_hand():
    """Two are nearer than rho and count in full, the far one pulls with rho: (0 - x) + (1 - x) + 1 = 0."""
    rows = torch.tensor([[0.0], [1.0], [100.0]])
    for penalty in ("l2", "l1"):
        x, _ = robust_centre(rows, even(3), penalty, 1.0, LIMITS)
        assert x.item() == pytest.approx(1.0, abs=1e-6)
    assert robust_centre(rows, even(3), "l2_squared", 1.0, LIMITS) == (pytest.approx(101 / 3), 0)


@pytest.mark.law("aggregator=fedplus_centre", "mu = 0 and penalty=l2 is the geometric median of the models")
@pytest.mark.parametrize("rho", [1e-6, 0.0])
def test_without_smoothing_it_is_the_geometric_median(rho: float):
    rows = rows_of(2)
    x, _ = robust_centre(rows, even(7), "l2", rho, LIMITS)
    torch.testing.assert_close(x, obvious_geometric_median(rows), atol=1e-6, rtol=0)


@pytest.mark.law("aggregator=fedplus_centre", "mu = 0 and penalty=l1 is the coordinate-wise median of the models")
@pytest.mark.parametrize("rho", [1e-7, 0.0])
def test_without_smoothing_it_is_the_coordinate_median(rho: float):
    rows = rows_of(3)
    x, _ = robust_centre(rows, even(7), "l1", rho, LIMITS)
    torch.testing.assert_close(x, rows.median(dim=0).values, atol=1e-6, rtol=0)


@pytest.mark.parametrize("rho", [0.5, 0.0])
def test_of_many_coordinate_medians_it_is_the_one_next_to_the_mean(rho: float):
    """By hand: of 0, 1, 6, 9 (mean 4) all of [1 + rho, 6 - rho] are; of 0, 1, 6, 21 (mean 7) and of 0, 0, 7, 7 too."""
    rows = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [6.0, 6.0, 7.0], [9.0, 21.0, 7.0]])
    x, _ = robust_centre(rows, even(4), "l1", rho, LIMITS)
    assert x.tolist() == pytest.approx([4.0, 6 - rho, 3.5])


@pytest.mark.parametrize("rho", [1e-9, 1e-3, 0.3, 5.0, 100.0])
def test_coordinates_with_ties_and_counts_are_fixed_points(rho: float):
    draws = torch.Generator().manual_seed(6)
    for clients in (1, 2, 3, 8):
        rows = torch.randint(-3, 4, (clients, 500), generator=draws).double() * torch.tensor([1.0, 1e-4]).repeat(250)
        count = torch.randint(1, 4, (clients,), generator=draws).double()
        x, _ = robust_centre(rows, count, "l1", rho, LIMITS)
        left = count @ proximal_residual(rows - x, "l1", rho) / count.sum()
        assert left.abs().max() <= 1e-6 * rho


@pytest.mark.law("aggregator=fedplus_centre", "a model that three clients have counts as three rows")
def test_a_count_is_so_many_rows():
    rows = rows_of(4, 4, 50)
    count = torch.tensor([1.0, 1.0, 0.0, 3.0], dtype=torch.float64)
    cases: list[tuple[Penalty, float]] = [("l2_squared", 0.5), ("l2", 0.5), ("l1", 0.5), ("l1", 0.0)]
    for penalty, rho in cases:
        x, _ = robust_centre(rows, count, penalty, rho, LIMITS)
        y, _ = robust_centre(rows[[0, 1, 3, 3, 3]], even(5), penalty, rho, LIMITS)
        torch.testing.assert_close(x, y)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_a_far_row_moves_it_by_little(penalty: Penalty):
    rows = rows_of(5, 9, 200)
    near, _ = robust_centre(rows, even(9), penalty, 0.1, (1e-9, 500))
    rows[0] = 1e12
    far, _ = robust_centre(rows, even(9), penalty, 0.1, (1e-15, 500))
    assert (far - near).abs().max() < 2


@pytest.mark.law(
    "aggregator=fedplus_centre", "four rows of nine, however far, leave it within the bound of the geometric median"
)
@pytest.mark.parametrize("far", [1e10, 3e38])
@pytest.mark.parametrize(("penalty", "rho"), [("l2", 1.0), ("l2", 0.0), ("l1", 1.0), ("l1", 0.0)])
def test_nearly_half_of_the_rows_do_not_drag_it_away(penalty: Penalty, rho: float, far: float):
    """Four of nine, as far away as they like, and 100 moves at most: the bound is the geometric median's."""
    rows = rows_of(5, 9, 20).float()
    rows[[0, 2, 3, 8]] = far * torch.tensor([[1.0], [1.0], [1.0], [-1.0]])
    honest = rows[[1, 4, 5, 6, 7]].norm(dim=1).max()
    x, _ = robust_centre(rows, even(9), penalty, rho, (1e-6, 100))
    assert x.norm() <= 2 * 5 / (9 - 2 * 4) * (honest + rho * 20**0.5)


def test_what_counts_is_how_many_have_a_model_not_how_many_models_there_are():
    """Three far models of a hundred, the others nearly alike: most of the rows, and few of the clients."""
    rows = torch.cat([torch.full((3, 4), 1e30), torch.zeros(1, 4), torch.ones(1, 4)])
    x, _ = robust_centre(rows, torch.tensor([1.0, 1, 1, 96, 1]).double(), "l2", 0.0, (1e-6, 100))
    assert x.abs().max() < 1e-6


@pytest.mark.parametrize("rows", [[3e38], [-3e38, 1e30, 3e38], [1e30, 1e30]])
def test_a_threshold_that_is_lost_beside_the_models(rows: list[float]):
    x, _ = robust_centre(torch.tensor(rows)[:, None], even(len(rows)), "l1", 1.0, LIMITS)
    assert x.item() == pytest.approx(float(np.median(np.array(rows, dtype=np.float32))))


def test_it_stops_by_the_models_own_scale():
    rows, steps = rows_of(7, 9, 50), []
    for scale in (1e-12, 1.0, 1e12):
        x, taken = robust_centre(rows * scale, even(9), "l2", 0.01 * scale, (1e-6, 500))
        torch.testing.assert_close(x / scale, robust_centre(rows, even(9), "l2", 0.01, LIMITS)[0], atol=1e-4, rtol=0)
        steps.append(taken)
    assert 2 < steps[0] == steps[1] == steps[2] < 100


def test_the_threshold_is_mu_by_alpha(tiny: Tiny):
    """One of six moved by 100 in every entry, the others stay: 5 x = mu / alpha = 1 for `l1`."""
    words = ("aggregator.penalty=l1", "aggregator.mu=0.5", "aggregator.alpha=0.5")
    world = world_of(tiny("aggregator=fedplus_centre", *words))
    after, _ = world.exp.aggregator.combine(
        world.first, uploads([2], torch.full((1, world.layout.size), 100.0)), {}, context.make_context(world, 1)
    )
    torch.testing.assert_close(after.flat, world.first.flat + 0.2)


def test_who_was_never_heard_of_has_the_first_model(tiny: Tiny):
    """Of six clients 1 and 4 are heard in the first round, 4 and 5 in the second: rows 1, new 4, 5, 3 first ones."""
    world = world_of(tiny("aggregator=fedplus_centre", "aggregator.penalty=l2_squared"))
    rule, first = world.exp.aggregator, world.first
    draws = torch.randn(4, world.layout.size, generator=torch.Generator().manual_seed(1))
    after, memory = rule.combine(first, uploads([1, 4], draws[:2]), {}, context.make_context(world, 1))
    torch.testing.assert_close(after.flat, first.flat + draws[:2].sum(dim=0) / 6)
    last, memory = rule.combine(after, uploads([4, 5], draws[2:]), memory, context.make_context(world, 2))
    models = [first.flat + draws[0], after.flat + draws[2], after.flat + draws[3], *[first.flat] * 3]
    torch.testing.assert_close(last.flat, torch.stack(models).mean(dim=0))
    assert memory["owner"].tolist() == [1, 4, 5]
    assert memory["columns"] == {"iterations": 0, "heard": 3}


def test_a_model_beyond_float32_is_not_remembered(tiny: Tiny):
    world = world_of(tiny("aggregator=fedplus_centre"))
    far = Weights(torch.full((world.layout.size,), 3e38), world.layout)
    ctx, delta = context.make_context(world, 1), far.flat.expand(2, -1)
    _, memory = world.exp.aggregator.combine(world.first, uploads([1, 2], delta / 3e38), {}, ctx)
    _, after = world.exp.aggregator.combine(far, uploads([2, 3], delta), memory, ctx)
    assert after["owner"].tolist() == [1, 2]
    assert torch.equal(after["rows"], memory["rows"])


def test_the_servers_own_row_and_clients_without_examples_do_not_count(tiny: Tiny):
    words = ("dataset.classes=2", "dataset.train_size=4", "scenario.participants=6")
    world = world_of(tiny("aggregator=fedplus_centre", "aggregator.penalty=l2_squared", *words))
    assert np.count_nonzero(context.make_context(world, 1).sizes) == 4
    delta = torch.ones(2, world.layout.size)
    after, memory = world.exp.aggregator.combine(
        world.first, uploads([SERVER, 0], delta), {}, context.make_context(world, 1)
    )
    torch.testing.assert_close(after.flat, world.first.flat + 0.25)
    assert memory["owner"].tolist() == [0]


def test_statistics_of_batch_norm_are_averaged(tiny: Tiny):
    words = ("model=complex_cnn", "dataset.shape=[1,8,8]", "scenario.clients=3")
    world = world_of(tiny("aggregator=fedplus_centre", "aggregator.mu=0", *words))
    delta = torch.tensor([[0.0], [0.0], [3.0]]).expand(-1, world.layout.size)
    after, _ = world.exp.aggregator.combine(world.first, uploads([0, 1, 2], delta), {}, context.make_context(world, 1))
    moved, parameters = after.flat - world.first.flat, world.layout.parameters
    torch.testing.assert_close(moved[parameters:], torch.ones_like(moved[parameters:]))
    assert moved[:parameters].abs().max() < 1e-4


def test_rows_of_several_clients_have_no_owner(tiny: Tiny):
    with pytest.raises(ConfigError, match="each client sent, or the sum of it, but pre_aggregation=bucketing mixes"):
        compatibility.refuse(spec.build(tiny("algorithm=fedplus", "pre_aggregation=bucketing")))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("algorithm=fedplus", "aggregator.mu=5"),
            "aggregator.mu must be that of local=fedplus, local.mu=0.3, got 5; ",
        ),
        (
            ("local=fedplus", "aggregator=fedplus_centre", "local.penalty=l1"),
            "aggregator.penalty must be that of local=fedplus, local.penalty=l1, got l2; set both to one value, or "
            "local.penalty alone with algorithm=fedplus",
        ),
    ],
)
def test_clients_and_server_must_mean_the_same_penalty(tiny: Tiny, words: tuple[str, ...], message: str):
    with pytest.raises(ConfigError, match=re.escape(message)):
        compatibility.refuse(spec.build(tiny(*words)))


def test_another_local_rule_has_a_mu_of_its_own(tiny: Tiny):
    compatibility.refuse(spec.build(tiny("local=prox", "aggregator=fedplus_centre", "local.mu=2")))
