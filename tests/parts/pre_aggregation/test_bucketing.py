"""Bucketing: every row in one bucket, and what a bucket counts."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import normal

from fedexp.core.random_streams import stream
from fedexp.core.values import Uploads
from fedexp.parts.aggregator.fedavg import FedAvg
from fedexp.parts.context import Context
from fedexp.parts.pre_aggregation import bucketing
from fedexp.parts.pre_aggregation.bucketing import Bucketing, assign_buckets, average_buckets


def uploads_of(delta: torch.Tensor, examples: list[int], importance: list[float] | None = None) -> Uploads:
    owner = np.arange(len(delta)) * 10
    weight = np.ones(len(delta)) if importance is None else np.array(importance)
    return Uploads(owner, owner * 0, np.array(examples), weight, delta, np.arange(len(delta)) * 1.0, owner * 1.0)


def context(number: int) -> Context:
    return cast(Context, SimpleNamespace(round=number, rng=lambda *name: stream(0, number, *name)))


def test_by_hand():
    uploads = uploads_of(torch.tensor([[1.0], [2.0], [3.0], [4.0], [8.0]]), [1, 2, 3, 4, 5], [1, 1, 2, 1, 1])
    together = average_buckets(uploads, np.array([0, 1, 0, 2, 1]), np.ones(5))
    assert together.owner.tolist() == [0, 10, 30]
    assert together.delta.flatten().tolist() == [2, 5, 4]
    assert together.examples.tolist() == [4, 7, 4]
    assert (together.examples * together.importance).tolist() == [7, 7, 4]
    assert together.loss_before.tolist() == [1, 2.5, 3]
    assert together.exact is None
    exact = np.array([[1.0, 9.0], [2.0, 8.0], [3.0, 7.0], [4.0, 6.0], [8.0, 5.0]])
    together = average_buckets(replace(uploads, exact=exact), np.array([0, 1, 0, 2, 1]), np.array([3, 1, 1, 1, 1]))
    assert together.exact is not None
    assert together.exact.tolist() == [[1.5, 8.5], [5.0, 6.5], [4.0, 6.0]]


def test_a_lost_loss_stays_in_its_bucket():
    uploads = uploads_of(torch.zeros(3, 1), [1, 1, 1])
    uploads.loss_before[2] = np.nan
    assert average_buckets(uploads, np.array([0, 0, 1]), np.ones(3)).loss_before[0] == 0.5


@pytest.mark.law("pre_aggregation=bucketing", "every client is in one bucket, and all buckets but the last are full")
@given(rows=st.integers(1, 40), size=st.integers(1, 9), seed=st.integers(0, 9))
def test_every_row_is_in_one_bucket(rows: int, size: int, seed: int):
    bucket = assign_buckets(rows, size, np.random.default_rng(seed))
    counts = np.bincount(bucket)
    assert sorted(counts, reverse=True) == [size] * (rows // size) + [rows % size] * (rows % size > 0)
    _, first = np.unique(bucket, return_index=True)
    assert (np.diff(first) > 0).all()


def test_buckets_are_drawn_anew_each_round_and_the_same_twice():
    drawn = [assign_buckets(20, 2, context(number).rng("pre_aggregation")).tolist() for number in (1, 2, 1)]
    assert drawn[0] == drawn[2] != drawn[1]


@pytest.mark.law(
    "pre_aggregation=bucketing", "the weighted mean of weighted buckets is the clients', whatever the size"
)
@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_weighted_buckets_have_the_weighted_mean_of_the_clients(size: int):
    uploads = uploads_of(normal(0, 7, 5), [3, 1, 4, 1, 5, 9, 2], [1, 2, 1, 1, 0.5, 1, 1])
    mixed, memory = Bucketing(size=size, weighting="num_samples").mix(uploads, {}, context(1))
    rule = FedAvg()
    assert memory["columns"]["buckets"] == len(mixed.owner) == -(-7 // size)
    torch.testing.assert_close(
        rule.reduce(mixed.delta, rule.shares(mixed)), rule.reduce(uploads.delta, rule.shares(uploads))
    )


@pytest.mark.parametrize("size", [1, 3, 20, 1500])
def test_many_rows_are_averaged_some_buckets_at_a_time(size: int, monkeypatch: pytest.MonkeyPatch):
    shapes: list[torch.Size] = []
    mix_rows = bucketing.mix_rows
    monkeypatch.setattr(
        bucketing, "mix_rows", lambda mix, rows, out: shapes.append(mix.shape) or mix_rows(mix, rows, out=out)
    )
    delta, bucket = normal(0, 2500, 3), assign_buckets(2500, size, np.random.default_rng(0))
    together = average_buckets(uploads_of(delta, [1] * 2500), bucket, np.ones(2500))
    for number in range(0, bucket.max() + 1, 17):
        torch.testing.assert_close(together.delta[number], delta[torch.from_numpy(bucket == number)].mean(dim=0))
    assert sum(rows for _, rows in shapes) == 2500
    assert max(rows for _, rows in shapes) <= max(1024, size)


def test_nobody():
    nobody = uploads_of(torch.zeros(0, 5), [])
    mixed, memory = Bucketing().mix(nobody, {}, context(1))
    assert len(mixed.owner) == 0
    assert memory == {"columns": {"buckets": 0}}
