"""Bucketing (Karimireddy, He & Jaggi 2022, arXiv 2006.09365).

The rows are shuffled and cut into buckets of `size`, the last of which may be smaller; each bucket's plain mean is one
row for the rule, which then gets fewer and more similar rows. f Byzantine clients may spoil f buckets, so a rule's
bound on f applies to the number of buckets.

The weight of a bucket is the sum of its members' weights: its examples are their sum, and its importance is chosen so
that the product fits. It has the smallest of their client numbers. `weighting=num_samples` uses these weights inside
the buckets, too: then a weighted mean of buckets is the weighted mean of the clients.
"""

from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import Context, Memory, PreAggregation, Range, Uploads, mix_rows

MAX_ROWS = 1024  # rows, or one bucket


def assign_buckets(rows: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """The bucket of each row, `[C]`; buckets are numbered by the first row that each of them holds."""
    bucket = np.empty(rows, dtype=np.int64)
    bucket[rng.permutation(rows)] = np.arange(rows) // size
    _, first = np.unique(bucket, return_index=True)
    return np.argsort(np.argsort(first))[bucket]


def bucket_means(delta: torch.Tensor, bucket: np.ndarray, share: np.ndarray) -> torch.Tensor:
    """The sums by `share [C]` of the rows of `delta [C, D]` with the same `bucket [C]`, one for each bucket.

    Some buckets at a time: the product with all rows would grow with their square.
    """
    order, ends = np.argsort(bucket, kind="stable"), np.cumsum(np.bincount(bucket))
    means = delta.new_empty((len(ends), delta.shape[1]))
    first = begin = 0
    while first < len(ends):
        last = max(first + 1, int(np.searchsorted(ends, begin + MAX_ROWS, side="right")))
        rows = np.sort(order[begin : ends[last - 1]])
        mix = np.where(bucket[rows] == np.arange(first, last)[:, None], share[rows], 0.0)
        chosen = delta if len(rows) == len(delta) else delta[torch.from_numpy(rows).to(delta.device)]
        mix_rows(torch.from_numpy(mix).to(delta.device), chosen, out=means[first:last])
        first, begin = last, int(ends[last - 1])
    return means


def average_buckets(uploads: Uploads, bucket: np.ndarray, weight: np.ndarray) -> Uploads:
    """One row for each bucket: the mean by `weight [C]` of the rows with the same `bucket [C]`, and of their losses."""
    _, first = np.unique(bucket, return_index=True)
    share = weight / np.bincount(bucket, weight)[bucket]
    examples = np.bincount(bucket, uploads.examples)
    return Uploads(
        uploads.owner[first],
        uploads.model[first],
        examples.astype(np.int64),
        np.bincount(bucket, uploads.examples * uploads.importance) / examples,
        bucket_means(uploads.delta, bucket, share),
        np.bincount(bucket, share * uploads.loss_before),
        np.bincount(bucket, share * uploads.loss_after),
        None if uploads.exact is None else np.stack([np.bincount(bucket, share * loss) for loss in uploads.exact.T], 1),
    )


class Bucketing(PreAggregation):
    """Reports how many buckets the rule got."""

    averages_rows = True

    size: Annotated[int, Range(1)] = 2
    weighting: Literal["num_samples", "uniform"] = "uniform"

    def mixed_rows(self, rows: int) -> int:
        return -(-rows // self.size)

    def mix(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        rows = len(uploads.owner)
        if rows == 0:
            return uploads, {"columns": {"buckets": 0}}
        bucket = assign_buckets(rows, self.size, ctx.rng("pre_aggregation"))
        examples = uploads.examples * uploads.importance
        weight = examples if self.weighting == "num_samples" else np.ones(rows)
        return average_buckets(uploads, bucket, weight), {"columns": {"buckets": int(bucket.max()) + 1}}
