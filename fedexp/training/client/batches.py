"""The mini-batches of a client: every engine trains on exactly these."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.privacy.contract import Sampling


@dataclass(frozen=True)
class Batches:
    """The mini-batches of one client in one round.

    Step s takes the examples at positions `order[bounds[s]:bounds[s + 1]]` of the client's shard; `epoch` is the number
    of steps of one epoch, `size` the batch size that was asked for, from which a batch may differ.
    """

    order: np.ndarray
    bounds: np.ndarray
    epoch: int
    size: int

    @property
    def steps(self) -> int:
        """How many steps the client takes."""
        return len(self.bounds) - 1

    def repeat_each(self, times: int) -> "Batches":
        """The same batches, each so many times in a row."""
        if times == 1:
            return self
        pieces = np.split(self.order, self.bounds[1:-1])
        order = np.concatenate([np.tile(piece, times) for piece in pieces])
        bounds = np.concatenate([[0], np.cumsum(np.repeat(self.counts, times))])
        return Batches(order, bounds, self.epoch * times, self.size)

    @property
    def counts(self) -> np.ndarray:
        """Number of examples of each batch, `[steps]`."""
        return np.diff(self.bounds)


@dataclass(frozen=True)
class BatchCut:
    """The batch boundaries of one client, before the order of its examples is drawn.

    `bounds [steps + 1]`, `epoch` and `size` are those of `Batches`; `visited` is how many examples an epoch takes.
    """

    bounds: np.ndarray
    epoch: int
    size: int
    visited: int

    @staticmethod
    def of(rule: LocalRule, examples: int, sampling: Sampling) -> "BatchCut":
        """Returns the boundaries for a client with so many examples; Poisson sampling uses only the number of steps.

        Raises:
            ConfigError: memory cannot hold so many steps.
        """
        size, epoch = _batch_size_and_steps(rule, examples, sampling)
        if epoch == 0:
            return BatchCut(np.zeros(1, np.int64), 0, size, 0)
        steps, visited = rule.steps_in(epoch), min(epoch * size, examples)
        ends = np.minimum(np.arange(1, epoch + 1) * size, visited)
        try:
            epochs = np.arange(math.ceil(steps / epoch))[:, None]
            bounds = np.concatenate([[0], (epochs * visited + ends).ravel()[:steps]])
        except (ValueError, MemoryError):
            raise ConfigError("local.epochs gives a client more steps than memory can hold; lower it") from None
        return BatchCut(bounds, epoch, size, visited)


def _batch_size_and_steps(rule: LocalRule, examples: int, sampling: Sampling) -> tuple[int, int]:
    """Returns the batch size, and the steps of an epoch, of a client with so many examples."""
    size = examples if rule.batch_size == "full" else rule.batch_size
    drops_last = rule.drop_last or sampling != "rule"
    return size, 0 if examples == 0 else examples // size if drops_last else math.ceil(examples / size)


def smallest_batch(rule: LocalRule, sizes: np.ndarray, sampling: Sampling) -> int:
    """The fewest examples of a batch where clients have so many (`sizes [C]`); 0 without any, or if they are drawn."""
    smallest = []
    for examples in [] if sampling == "poisson" else np.unique(sizes).tolist():
        size, epoch = _batch_size_and_steps(rule, examples, sampling)
        if epoch:  # only its last batch may be smaller
            smallest.append(min(size, examples - (epoch - 1) * size) if rule.steps_in(epoch) >= epoch else size)
    return min(smallest, default=0)


def draw_batches(
    rule: LocalRule,
    examples: int,
    rng: np.random.Generator,
    sampling: Sampling = "rule",
    classes: np.ndarray | None = None,
    cut: BatchCut | None = None,
) -> Batches:
    """Cuts a client's examples into batches, epoch after epoch, in the rule's order.

    An epoch has ceil(n / B) steps, or floor with `drop_last`; a client with fewer than B examples then takes none.
    Private training draws them in another way. `shuffled` always shuffles and drops the last batch. With `poisson`
    every example is in each batch with probability B / n, independently, so batches differ in size and may be empty.
    A rule that goes class by class needs the examples' `classes [n]`. `cut` holds the boundaries if they are known.
    Each batch comes as many times in a row as the rule takes steps on it.
    """
    cut = cut or BatchCut.of(rule, examples, sampling)
    steps = len(cut.bounds) - 1
    if steps == 0:
        return Batches(np.zeros(0, np.int64), cut.bounds, cut.epoch, cut.size)
    if sampling == "poisson":
        return _draw_poisson(cut.size / examples, steps, examples, rng, cut)
    epochs = range(math.ceil(steps / cut.epoch))
    if rule.order == "shuffled" or sampling != "rule":
        orders = [rng.permutation(examples)[: cut.visited] for _ in epochs]
    else:
        fixed = np.arange(examples) if classes is None else np.argsort(classes, kind="stable")
        orders = [fixed[: cut.visited] for _ in epochs]
    order = orders[0] if len(orders) == 1 else np.concatenate(orders)
    return Batches(order[: cut.bounds[-1]], cut.bounds, cut.epoch, cut.size).repeat_each(rule.steps_per_batch)


def _draw_poisson(rate: float, steps: int, examples: int, rng: np.random.Generator, cut: BatchCut) -> Batches:
    """Poisson sampling: each example is in each batch independently; the order within a batch does not matter."""
    drawn = [np.flatnonzero(rng.random(examples) < rate) for _ in range(steps)]
    bounds = np.concatenate([[0], np.cumsum([len(batch) for batch in drawn])])
    return Batches(np.concatenate(drawn), bounds, cut.epoch, cut.size)


def draw_all(
    rules: Sequence[LocalRule],
    shards: Sequence[np.ndarray],
    labels: np.ndarray,
    rngs: Iterable[np.random.Generator],
    sampling: Sampling = "rule",
) -> tuple[Batches, ...]:
    """What `draw_batches` draws for every client, given its rule, its examples `shards [C]`, and its stream.

    `labels [N, ...]` are those of all examples; they are classes where a rule goes class by class.
    """
    cuts: dict[tuple[int, int], BatchCut] = {}
    batches = []
    for rule, shard, rng in zip(rules, shards, rngs, strict=True):
        number = len(shard)
        key = id(rule), number
        if key not in cuts:
            cuts[key] = BatchCut.of(rule, number, sampling)
        classes = labels[shard] if rule.order == "by_class" else None
        batches.append(draw_batches(rule, number, rng, sampling, classes, cuts[key]))
    return tuple(batches)


def running_losses(losses: np.ndarray, counts: np.ndarray, epoch: int) -> np.ndarray:
    """Example-weighted mean of `losses [..., steps]` of batches in the first and the last epoch, float64 `[..., 2]`.

    `counts [..., steps]` are the batches' examples, `epoch` the number of steps of an epoch. NaN without examples.
    """
    last = 0 if epoch == 0 else (losses.shape[-1] - 1) // epoch * epoch
    parts = slice(0, epoch), slice(last, None)
    return np.stack([_average(losses[..., part], counts[..., part]) for part in parts], axis=-1)


def _average(losses: np.ndarray, counts: np.ndarray) -> np.ndarray:
    total = counts.sum(axis=-1)
    sums = (losses.astype(float, order="C") * counts).sum(axis=-1)
    return np.divide(sums, total, out=np.full(np.shape(total), math.nan), where=total > 0)
