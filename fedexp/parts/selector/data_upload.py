"""Which examples clients send to the server while others train (HybridFL, algorithm 8 of the selection thesis).

Classes take turns; for each class, the uploader with the highest throughput that still has examples of it sends its
first remaining one. Uploads follow each other, and stop at the first that would end after the deadline. Corrections of
the text: the deadline is tested with the example that would be added, and a class that nobody has is skipped.
Legend: n uploaders, S examples of all of them.
"""

import numpy as np


def upload_order(shards: list[np.ndarray], labels: list[np.ndarray], throughput: np.ndarray) -> np.ndarray:
    """All examples in the order of their turns: `(uploader, position in its shard)`, int64 [S, 2].

    `shards` and `labels` hold an array for each uploader, `throughput` is [n]; at ties the smaller position comes
    first.
    """
    ranked = np.argsort(-throughput, kind="stable")
    uploader = np.concatenate([np.full(len(shards[number]), number) for number in ranked] or [np.zeros(0, np.int64)])
    position = np.concatenate([np.arange(len(shards[number])) for number in ranked] or [np.zeros(0, np.int64)])
    label = np.concatenate([labels[number] for number in ranked] or [np.zeros(0, np.int64)])
    by_class = np.argsort(label, kind="stable")
    counts = np.unique(label, return_counts=True)[1]
    turn = np.empty(len(label), dtype=np.int64)
    turn[by_class] = np.concatenate([np.arange(count) for count in counts] or [np.zeros(0, np.int64)])
    order = np.lexsort((label, turn))
    return np.stack([uploader[order], position[order]], axis=1)


def examples_before_deadline(
    shards: list[np.ndarray], labels: list[np.ndarray], throughput: np.ndarray, bits: float, deadline_s: float
) -> np.ndarray:
    """The examples that reach the server before the deadline, in order of arrival; `throughput [n]` is in Mbit/s."""
    order = upload_order(shards, labels, throughput)
    arrival = np.cumsum(bits / (throughput[order[:, 0]] * 1e6))
    in_time = order[: np.searchsorted(arrival, deadline_s, side="right")]
    return np.array([shards[uploader][position] for uploader, position in in_time.tolist()], dtype=np.int64)
