"""The arrays of a bucket are what goes row by row and batch by batch, to the bit."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fedexp.core.random_streams import stream, streams
from fedexp.parts.local.sgd import SGD
from fedexp.training.client.batches import Batches, draw_all, draw_batches
from fedexp.training.stacked.batch_schedule import BatchSchedule

SETTINGS: list[tuple[dict[str, Any], Any]] = [
    ({}, "rule"),
    ({"order": "file", "drop_last": True}, "rule"),
    ({"epochs": 2.5}, "rule"),
    ({"epochs": None, "steps": 9}, "rule"),
    ({"batch_size": "full", "epochs": 3}, "rule"),
    ({"epochs": 4}, "shuffled"),
    ({"epochs": 3}, "poisson"),
]


def drawn(sizes: list[int], settings: dict[str, Any], sampling: Any) -> tuple[Batches, ...]:
    rules = [SGD(**{"batch_size": 4, **settings})] * len(sizes)
    shards = [np.arange(size) for size in sizes]
    labels = np.zeros(max(sizes, default=0), int)
    return draw_all(rules, shards, labels, streams(3, 7, "batches", owner=np.arange(len(sizes))), sampling)


def plain_loss(losses: np.ndarray, batches: Batches) -> tuple[float, float]:
    """The mean over the examples of the first and the last epoch of one row, as it was first written."""
    if batches.steps == 0:
        return math.nan, math.nan
    last = (batches.steps - 1) // batches.epoch * batches.epoch

    def average(part: slice) -> float:
        counts = batches.counts[part]
        total = int(counts.sum())
        return float((losses[part].astype(float) * counts).sum() / total) if total else math.nan

    return average(slice(0, batches.epoch)), average(slice(last, None))


def test_streams_are_those_that_are_asked_for_alone():
    owner = np.array([5, 0, -1, 5, 10**9])
    for name in ((), (2,), (2, "batches")):
        together = [each.permutation(9).tolist() for each in streams(1, *name, owner=owner)]
        assert together == [stream(1, *name, k).permutation(9).tolist() for k in owner.tolist()]
    assert list(streams(1, owner=owner[:0])) == []


@pytest.mark.parametrize(("settings", "sampling"), SETTINGS, ids=str)
def test_all_batches_are_those_that_are_drawn_one_by_one(settings: dict[str, Any], sampling: Any):
    sizes = [9, 0, 4, 9, 1, 30, 4]
    rule = SGD(**{"batch_size": 4, **settings})
    for k, found in enumerate(drawn(sizes, settings, sampling)):
        one = draw_batches(rule, sizes[k], stream(3, 7, "batches", k), sampling)
        assert (found.order.tolist(), found.bounds.tolist()) == (one.order.tolist(), one.bounds.tolist())
        assert (found.epoch, found.size) == (one.epoch, one.size)


@given(
    sizes=some.lists(some.integers(0, 70), min_size=1, max_size=6),
    chosen=some.sampled_from(SETTINGS),
    seed=some.integers(0, 5),
)
def test_the_arrays_of_a_bucket_are_those_of_its_rows(sizes: list[int], chosen: tuple[dict[str, Any], Any], seed: int):
    settings, sampling = chosen
    batches = drawn(sizes, settings, sampling)
    shards = [100 * row + np.arange(size) for row, size in enumerate(sizes)]
    table = BatchSchedule.of(batches)
    index, mask = table.examples(shards)
    losses = np.random.default_rng(seed).random((len(index), len(sizes)), np.float32)
    told = table.running_losses(losses)
    for row, each in enumerate(batches):
        assert table.active_steps[:, row].sum() == table.steps[row] == each.steps
        for step in range(len(index)):
            wanted = each.order[each.bounds[step] : each.bounds[step + 1]] + 100 * row if step < each.steps else []
            assert index[step, row][mask[step, row]].tolist() == list(wanted)
            assert set(index[step, row][~mask[step, row]].tolist()) <= {next(iter(wanted), 0)}
        assert np.array_equal(told[row], plain_loss(losses[: each.steps, row], each), equal_nan=True)


def test_large_batches_are_padded_to_less_than_twice_their_size():
    sizes = [0, 1, 3, 64, 65, 100, 128, 129, 250, 256]
    table = BatchSchedule.of(drawn(sizes, {"batch_size": "full", "epochs": 1}, "shuffled"))
    assert table.widths.tolist() == [64, 64, 64, 64, 128, 128, 128, 256, 256, 256]
    few = BatchSchedule.of(drawn([5, 1, 40], {"batch_size": "full", "epochs": 1}, "shuffled"))
    assert few.widths.tolist() == [40, 40, 40]


@given(
    sizes=some.lists(some.integers(0, 30), min_size=1, max_size=6),
    chosen=some.sampled_from(SETTINGS),
    seed=some.integers(0, 5),
)
def test_weighed_losses_add_up_to_the_running_ones(sizes: list[int], chosen: tuple[dict[str, Any], Any], seed: int):
    table = BatchSchedule.of(drawn(sizes, *chosen))
    losses, weights = np.random.default_rng(seed).random((table.counts.shape[1], len(sizes))), table.weights()
    if len(losses) == 0:
        assert np.isnan(weights).all()
        return
    np.testing.assert_allclose((weights * losses).sum(axis=1).T, table.running_losses(losses), rtol=1e-12)
