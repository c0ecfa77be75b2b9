"""The training of several runs as one: their rows behind each other, their examples in one pool.

Each row draws as it does in its own run. Legend: C rows of all runs, S examples, D entries of a row, P trainable
entries.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch

from fedexp.core.values import Plan
from fedexp.training.examples import Examples
from fedexp.training.loop import Task
from fedexp.training.twins import alike

_SETTINGS = ("augment", "images", "plain", "mean", "std", "factor", "offset")


@dataclass(frozen=True)
class Portion:
    """Rows `[n]` of a run's task, and where its examples begin in the pool."""

    task: Task
    rows: np.ndarray
    begin: int = 0


@dataclass(frozen=True)
class JointTask(Task):
    """The rows of several tasks; `origins` says of each which row of which task it is."""

    origins: tuple[tuple[Task, int], ...] = ()

    def seeds(self, name: str, rows: np.ndarray) -> list[int]:
        found: list[int] = []
        chosen = [self.origins[row] for row in rows.tolist()]
        for _, several in groupby(chosen, key=lambda origin: id(origin[0])):
            mine = list(several)
            found += mine[0][0].seeds(name, np.array([own for _, own in mine]))
        return found


def joined(parts: Sequence[Portion], rates: Sequence[float] | None) -> JointTask:
    """One task of the rows of all parts; `rates`, one a part, where they differ or move."""
    tasks = [part.task for part in parts]
    origins = tuple((part.task, int(row)) for part in parts for row in part.rows)
    shards = tuple(part.task.plan.shards[row] + part.begin for part in parts for row in part.rows)
    owner = np.concatenate([part.task.plan.owner[part.rows] for part in parts])
    others = [_chosen(part.task.others, part.rows, 1) for part in parts]
    counts = [_chosen(part.task.counts, part.rows, 0) for part in parts]
    return JointTask(
        start=torch.cat([_rows(part.task.start, part.rows) for part in parts]),
        anchor=torch.cat([_rows(part.task.anchor, part.rows) for part in parts]),
        plan=Plan(owner, shards),
        batches=tuple(task.batches[row] for task, row in origins),
        seed=tasks[0].seed,
        round=tasks[0].round,
        lr=None if rates is None else _rate(rates, [len(part.rows) for part in parts], tasks[0].start),
        others=None if others[0] is None else torch.cat([each for each in others if each is not None], dim=1),
        counts=None if counts[0] is None else torch.cat([each for each in counts if each is not None]),
        origins=origins,
    )


def _rows(matrix: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
    """The rows `[n]` of `[C, D]`; the matrix itself where they are all of it."""
    return matrix if len(rows) == len(matrix) else matrix[torch.from_numpy(rows).to(matrix.device)]


def _chosen(values: torch.Tensor | None, rows: np.ndarray, dim: int) -> torch.Tensor | None:
    return None if values is None else values.index_select(dim, torch.from_numpy(rows).to(values.device))


def _rate(rates: Sequence[float], rows: Sequence[int], like: torch.Tensor) -> float | torch.Tensor:
    """The rate of all rows, or a column `[C, 1]` of each row's own."""
    if len(set(rates)) == 1:
        return rates[0]
    return like.new_tensor(np.repeat(np.array(rates), rows))[:, None]


def poolable(a: Examples, b: Examples) -> bool:
    """Whether the examples of two runs can lie in one pool: of one kind, normalised and changed alike."""
    kinds = [(each.x.dtype, each.x.shape[1:], each.x.device, each.y.dtype, each.y.shape[1:]) for each in (a, b)]
    return kinds[0] == kinds[1] and all(alike(getattr(a, name), getattr(b, name)) for name in _SETTINGS)


def pooled(several: Sequence[Examples]) -> Examples:
    """All their examples behind each other, `x [S, *shape]`; the same object for one."""
    if len(several) == 1:
        return several[0]
    pool = copy.copy(several[0])
    pool.x, pool.y = torch.cat([each.x for each in several]), torch.cat([each.y for each in several])
    return pool


def nbytes(examples: Examples) -> int:
    """How much memory they take."""
    return sum(each.numel() * each.element_size() for each in (examples.x, examples.y))
