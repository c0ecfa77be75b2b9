"""What robust rules promise: no favourite client, no favourite origin, and bounds below the breakdown point.

And those that remember all clients: that one without examples counts for nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import equal_shares, normal
from worlds import Tiny, folded, rounds_with_rows, uploads_like, world_of

from fedexp.core.values import Weights
from fedexp.maths.rows import distances_to
from fedexp.parts.aggregator.bulyan import bulyan
from fedexp.parts.aggregator.centered_clipping import move_centre
from fedexp.parts.aggregator.geometric_median import GeometricMedian
from fedexp.parts.aggregator.krum import krum
from fedexp.parts.aggregator.median import median
from fedexp.parts.aggregator.multi_krum import multi_krum
from fedexp.parts.aggregator.norm_clipping import NormClipping
from fedexp.parts.aggregator.trimmed_mean import trimmed_mean
from fedexp.parts.pre_aggregation.nearest_neighbours import neighbour_means

Rule = Callable[[torch.Tensor, int], torch.Tensor]


def geometric_median(rows: torch.Tensor, _byzantine: int) -> torch.Tensor:
    eps = 1e-8 * float(rows.double().norm(dim=1).median()) + 1e-45  # what it is precise to
    return GeometricMedian(eps=eps).reduce_and_report(rows, equal_shares(len(rows)))[0]


def clipped_mean(rows: torch.Tensor, _byzantine: int) -> torch.Tensor:
    return NormClipping().reduce_and_report(rows, equal_shares(len(rows)))[0]


def centered_clipping(rows: torch.Tensor, _byzantine: int) -> torch.Tensor:
    centre = torch.zeros(rows.shape[1], dtype=torch.float64)
    distance = distances_to(rows, centre)
    return move_centre(rows, equal_shares(len(rows)), centre, distance, float(distance.median())).to(rows.dtype)


def most_of(rule: str) -> Callable[[int], int]:
    """The largest f that n rows allow."""
    divisor = {"krum": (3, 2), "multi_krum": (3, 2), "bulyan": (3, 4)}.get(rule, (1, 2))
    return lambda rows: (rows - divisor[0]) // divisor[1]


FREE: dict[str, Rule] = {  # of where the origin lies
    "krum": krum,
    "multi_krum": lambda rows, f: multi_krum(rows, equal_shares(len(rows)), f, len(rows) - f),
    "median": lambda rows, f: median(rows),
    "trimmed_mean": trimmed_mean,
    "geometric_median": geometric_median,
    "bulyan": bulyan,
    "nearest_neighbours, trimmed_mean": lambda rows, f: trimmed_mean(neighbour_means(rows, f), f),
}
ALL: dict[str, Rule] = FREE | {"norm_clipping": clipped_mean, "centered_clipping": centered_clipping}
cases = {"rows": st.integers(3, 15), "seed": st.integers(0, 2**32), "scale": st.sampled_from([1e-3, 1.0, 1e30])}


def near(found: torch.Tensor, expected: torch.Tensor, size: float) -> bool:
    return bool((found.double() - expected.double()).abs().max() <= 1e-5 * size)


@pytest.mark.parametrize("name", ALL)
@given(**cases)
def test_the_order_of_clients_does_not_matter(name: str, rows: int, seed: int, scale: float):
    """Ties apart: with one neighbour, which Bulyan's last choices below f = 3 look at, the two nearest rows tie."""
    rows += 12 if name == "bulyan" else 1
    delta, order = normal(seed, rows, 4) * scale, np.random.default_rng(seed).permutation(rows)
    f = most_of(name)(rows)
    assert near(ALL[name](delta, f), ALL[name](delta[order], f), scale)


@pytest.mark.law("aggregator=krum", "moving all updates by a vector moves the result by it")
@pytest.mark.law("aggregator=multi_krum", "moving all updates by a vector moves the result by it")
@pytest.mark.law("aggregator=median", "moving all updates by a vector moves the result by it")
@pytest.mark.law("aggregator=trimmed_mean", "moving all updates by a vector moves the result by it")
@pytest.mark.law("aggregator=geometric_median", "moving all updates by a vector moves the result by it")
@pytest.mark.law("aggregator=bulyan", "moving all updates by a vector moves the result by it")
@pytest.mark.law(
    "pre_aggregation=nearest_neighbours",
    "before the trimmed mean, moving all updates by a vector moves the result by it",
)
@pytest.mark.parametrize("name", FREE)
@given(**cases)
def test_moving_all_rows_moves_the_result(name: str, rows: int, seed: int, scale: float):
    delta, f = normal(seed, rows, 4) * scale, most_of(name)(rows)
    way = normal(seed + 1, 4) * 10 * scale
    assert near(FREE[name](delta + way, f), FREE[name](delta, f) + way, 10 * scale)


def attackers(count: int, honest: torch.Tensor, kind: str, rng: np.random.Generator) -> torch.Tensor:
    """Rows that may be anything: alike or not, huge or just outside, or a little of everything."""
    drawn = torch.from_numpy(rng.normal(size=(count, honest.shape[1]))).float()
    far = {"alike": drawn[:1].expand_as(drawn) * 1e30, "apart": drawn * 1e30, "near": drawn * 5}
    far["against"] = (-100 * honest.mean(dim=0)).expand_as(drawn)
    far["mixed"] = drawn * torch.from_numpy(10 ** rng.uniform(-30, 30, size=(count, 1))).float()
    far["largest"] = drawn.sign() * torch.finfo(torch.float32).max
    return far[kind]


@pytest.mark.law(
    "aggregator=krum", "f arbitrary rows leave it within 1 + 2 sqrt(n - f - 2) lengths of the longest honest row"
)
@pytest.mark.law(
    "aggregator=multi_krum", "f arbitrary rows leave it within 1 + 2 sqrt(n - f - 2) lengths of the longest honest row"
)
@pytest.mark.law(
    "aggregator=median",
    "f of n rows, less than half and however far, leave it within sqrt(n - f) lengths of the longest honest row",
)
@pytest.mark.law(
    "aggregator=trimmed_mean", "f of n arbitrary rows leave it within sqrt(n - f) lengths of the longest honest row"
)
@pytest.mark.law(
    "aggregator=bulyan", "f of n arbitrary rows leave it within 3 sqrt(n - f) lengths of the longest honest row"
)
@pytest.mark.law(
    "aggregator=geometric_median",
    "f of n rows, however far, leave it within 2 (n - f) / (n - 2f) lengths of the longest honest row",
)
@pytest.mark.law(
    "aggregator=norm_clipping",
    "with the median norm as the radius, less than half of the rows leave it no longer than the longest honest row",
)
@pytest.mark.law(
    "aggregator=centered_clipping",
    "from a centre at zero, with the median norm as the radius, less than half of the rows leave it no longer than the "
    "longest honest row",
)
@pytest.mark.law(
    "pre_aggregation=nearest_neighbours",
    "before the trimmed mean, f of n arbitrary rows leave it within 3 sqrt(n - f) lengths of the longest honest row",
)
@pytest.mark.parametrize("name", ALL)
@given(
    rows=st.integers(3, 20),
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["alike", "apart", "near", "against", "mixed", "largest"]),
    entries=st.sampled_from([4, 40]),
)
def test_below_the_breakdown_point_arbitrary_rows_have_bounded_influence(
    name: str, rows: int, seed: int, kind: str, entries: int
):
    f, rng = max(most_of(name)(rows), 0), np.random.default_rng(seed)
    honest = normal(seed, rows - f, entries)
    delta = torch.cat([honest, attackers(f, honest, kind, rng)])[rng.permutation(rows)]
    radius = float(honest.norm(dim=1).max())
    found = ALL[name](delta, f)
    assert float(found.double().norm()) <= bound(name, rows, f) * radius * (1 + 1e-5)


def bound(name: str, n: int, f: int) -> float:
    """How far from the origin the result may be, in units of the longest honest row.

    Krum: whoever is chosen has an honest neighbour within sqrt(n - f - 2) diameters. Coordinate by coordinate the
    median and the trimmed mean stay between honest values, and Bulyan within the honest width of the median; the
    largest honest square of a coordinate is at most the sum of all n - f, and these add up to n - f squared lengths.
    Geometric median: 2 (n - f) / (n - 2f) (Pillutla et al. 2022). Clipping: the radius is an honest norm at most.
    A mean of n - f nearest rows: f wrong ones are no farther than the honest ones, two radii from the honest row.
    """
    if name in ("krum", "multi_krum"):
        return 1 + 2 * (n - f - 2) ** 0.5
    if name == "geometric_median":
        return 2 * (n - f) / (n - 2 * f)
    if name in ("norm_clipping", "centered_clipping"):
        return 1
    return (n - f) ** 0.5 * (1 if name in ("median", "trimmed_mean") else 3)


@pytest.mark.parametrize("f", [1, 4, 20])
def test_a_median_may_be_as_long_as_its_bound(f: int):
    """f + 1 honest rows of length 1, each in a direction of its own: far rows make every coordinate 1."""
    honest, far = torch.eye(f + 1), torch.full((f, f + 1), 1e6)
    for rule in (median, lambda rows: trimmed_mean(rows, f)):
        assert float(rule(torch.cat([honest, far])).norm()) == pytest.approx(bound("median", 2 * f + 1, f))


@given(rows=st.integers(1, 9), seed=st.integers(0, 2**32), scale=st.sampled_from([1e-30, 1.0, 1e30, 1e38]))
def test_equal_rows_are_the_result_of_every_rule(rows: int, seed: int, scale: float):
    """Three times 1e38 is near the end of float32: a sum in it would be infinite."""
    row = normal(seed, 4).clamp(-3, 3) * scale
    for name, rule in ALL.items():
        if most_of(name)(rows) >= 0:
            f = most_of(name)(rows)
            torch.testing.assert_close(rule(row.expand(rows, -1), f), row, rtol=1e-6, atol=0)


SIZES = {"with": np.array([3, 3, 0, 2]), "without": np.array([3, 3, 2])}


@pytest.mark.law("aggregator", "a client without examples counts for nothing in what is remembered of all clients")
@pytest.mark.parametrize(
    "word", ["aggregator=mifa", "aggregator=fedvarp", "algorithm=feddyn", "algorithm=agnostic", "algorithm=ca2fl"]
)
def test_a_client_without_examples_changes_nothing(tiny: Tiny, word: str):
    world = world_of(tiny(word, "scenario.participants=2"))
    models = {}
    for name, sizes in SIZES.items():
        model, memory = world.first, {}
        for number, owner in enumerate([[0, 1], [1, len(sizes) - 1], [0, len(sizes) - 1]]):
            rows = torch.stack([torch.full((world.layout.size,), number + 1.0), torch.ones(world.layout.size)])
            uploads = replace(uploads_like(rows, owner), exact=np.array([[1.0, 0.5], [2.0, 1.0]]))
            ctx: Any = SimpleNamespace(sizes=sizes, layout=world.layout)
            moved, memory = world.exp.aggregator.combine(model, uploads, memory, ctx)
            model = Weights(moved.flat, world.layout)
        models[name] = model.flat
    torch.testing.assert_close(models["with"], models["without"], rtol=1e-6, atol=1e-6)
    assert not torch.equal(models["with"], world.first.flat)


COUNTING = ("model=torch", "model.factory=own_networks:Counting", "engine=loop")
BY_LENGTH = {
    "extrapolation": ("aggregator.eps=0.1",),
    "qfedavg": ("aggregator.lr=0.1",),
    "fedmgda": (),
    "fltrust": ("scenario.public_fraction=0.2",),
}


@pytest.mark.law("aggregator=extrapolation", "buffers have no part in lengths, to the byte, and take the mean")
@pytest.mark.law("aggregator=qfedavg", "buffers have no part in lengths, to the byte, and take the mean")
@pytest.mark.law("aggregator=fedmgda", "buffers have no part in lengths, to the byte, and take the mean")
@pytest.mark.law("aggregator=fltrust", "buffers have no part in lengths, to the byte, and take the mean")
@pytest.mark.parametrize("name", BY_LENGTH)
def test_buffers_have_no_part_in_lengths_and_take_the_mean(tiny: Tiny, name: str):
    """Counters that all clients move by the same move by as much, and nothing else does."""
    world = world_of(tiny(*COUNTING, f"aggregator={name}", *BY_LENGTH[name]))
    parameters, ends = world.layout.parameters, []
    assert world.layout.size == parameters + 1  # the integer is no entry
    for moved in (0.0, 4096.0):
        rows = torch.randn(4, world.layout.size, generator=torch.Generator().manual_seed(0))
        rows[:, parameters:] = moved
        uploads = replace(uploads_like(rows), exact=np.array([[1.0, 0.5], [2.0, 1.0], [0.5, 0.5], [4.0, 3.0]]))
        model, _ = folded(world, uploads)
        ends.append(model[:parameters])
        assert model[parameters:].item() == moved
    assert torch.equal(*ends)
    assert not torch.equal(ends[0], world.first.flat[:parameters])


@pytest.mark.parametrize("name", BY_LENGTH)
def test_a_counter_of_batches_counts_those_of_a_client(tiny: Tiny, name: str):
    """Two epochs of two batches a round, for six clients with 20 (with public data 16) examples each."""
    words = ("local.epochs=2", "local.batch_size=10", "selector=all", "rounds=3", "evaluation.client_losses=exact")
    world = world_of(tiny(*COUNTING, f"aggregator={name}", *BY_LENGTH[name], *words))
    for number, (state, *_) in enumerate(rounds_with_rows(world), 1):
        assert state.models[0].flat[-1].item() == 4 * number
