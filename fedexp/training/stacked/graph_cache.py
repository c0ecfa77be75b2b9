"""Several steps captured as one CUDA graph: one for each shape, few shapes, and one pool of memory for all.

A captured step has one shape for good. Batches of another size, and rounds of another number of participants, would
each be captured anew. So shapes are rounded up to few sizes; the sizes that the config itself asks for are not
rounded. Padded rows are frozen, padded examples masked. Of the graphs only those used last are kept, as many as fit in
the memory; all go where a GPU's memory runs out (`row_groups.py`). What a captured step leaves behind lies in its
bucket, outside the pool, so that the graphs may share it. Legend: R rows, B batch.
"""

import gc
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from fedexp.training.stacked.bucket import Bucket
from fedexp.training.stacked.step_schedule import StepArrays


class GraphShape(NamedTuple):
    """What a captured graph fits: tasks of these sizes, whose rate moves or is the rule's own."""

    rows: int
    batch: int
    moves_rate: bool
    steps_per_graph: int
    max_steps: int


MAX_GRAPHS = 8
GRAPH_LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
WARM_UP_STEPS = 3  # steps before a capture, in which libraries choose their kernels


def round_up_size(size: int, usual: int = 0) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ...: at most half as much again, nor past the `usual` size."""
    power = 1 << max(0, size - 1).bit_length()
    rounded = power * 3 // 4 if size <= power * 3 // 4 else power
    return min(rounded, usual) if size <= usual else rounded


def round_down_size(size: int) -> int:
    """The largest of 1, 2, 3, 4, 6, 8, 12, ... that is at most `size`, from 1."""
    power = 1 << (size.bit_length() - 1)
    return power * 3 // 2 if size >= power * 3 // 2 else power


def choose_steps_per_graph(steps: int) -> int:
    """Chooses how many steps one graph holds: the most of `GRAPH_LENGTHS` with at most 1/16 of idle steps."""
    return max(length for length in GRAPH_LENGTHS if length == 1 or 0 < -(-steps // length) * length * 16 <= steps * 17)


def pad_rows(rows: np.ndarray, arrays: StepArrays, usual: tuple[int, int]) -> tuple[np.ndarray, StepArrays]:
    """Rounds up R and B of positions `[R]` and of the arrays of their steps.

    Neither past their `usual` sizes, which follow from the config. An added row is the last one again, which takes no
    step; an added example is the batch's last one with mask 0.
    """
    index, mask, active_steps, *flags = arrays
    sizes = len(rows), index.shape[2]
    added_rows, added_examples = (round_up_size(size, most) - size for size, most in zip(sizes, usual, strict=True))
    rows = np.concatenate([rows, np.repeat(rows[-1:], added_rows)])
    index = np.pad(index, ((0, 0), (0, added_rows), (0, added_examples)), mode="edge")
    mask = np.pad(mask, ((0, 0), (0, added_rows), (0, added_examples)))
    active_steps = np.pad(active_steps, ((0, 0), (0, added_rows)))
    return rows, StepArrays(
        index, mask, active_steps, *(np.pad(flag, ((0, 0), (0, added_rows), (0, 0))) for flag in flags)
    )


class CudaGraphCache:
    """Caches the buckets and CUDA graphs of the shapes that were used last."""

    def __init__(self, step: Callable[[Bucket], None], cost: Callable[[GraphShape], float], limit: float) -> None:
        """`step` takes the next steps of a bucket, in place; the `cost` of all kept shapes is at most `limit`."""
        self.step, self.cost, self.limit = step, cost, limit
        self.memory_pool: Any = None
        self.graphs: OrderedDict[GraphShape, tuple[Bucket, torch.cuda.CUDAGraph]] = OrderedDict()

    def get(self, shape: GraphShape, make_bucket: Callable[[], Bucket]) -> tuple[Bucket, Callable[[], None]]:
        """Returns the bucket of a shape, creating it if needed, and the function that takes its steps."""
        if shape not in self.graphs:
            while self.graphs and not self._has_room(shape):
                self.graphs.popitem(last=False)
            bucket = make_bucket()
            self.graphs[shape] = bucket, self._capture(bucket)
        self.graphs.move_to_end(shape)
        bucket, graph = self.graphs[shape]
        return bucket, graph.replay

    def clear(self) -> None:
        """Throws all graphs and their buckets away."""
        self.graphs.clear()
        torch.cuda.empty_cache()

    def _has_room(self, shape: GraphShape) -> bool:
        return len(self.graphs) < MAX_GRAPHS and sum(map(self.cost, [*self.graphs, shape])) <= self.limit

    def _capture(self, bucket: Bucket) -> torch.cuda.CUDAGraph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                self.step(bucket)
        torch.cuda.current_stream().wait_stream(side)
        if self.memory_pool is None:
            self.memory_pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with collecting_no_garbage(), torch.cuda.graph(graph, pool=self.memory_pool):
            self.step(bucket)
        return graph


@contextmanager
def collecting_no_garbage() -> Iterator[None]:
    """Puts Python's garbage collection off: a graph that it throws away would spoil one that is being captured."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
