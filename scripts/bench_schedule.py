"""Milliseconds of the host's own work for a stacked round, row by row and at once: batches, arrays, seeds, losses.

    python scripts/bench_schedule.py

Both ways give the same numbers, which is checked. The best of `TURNS` turns of each, taken in turn.
"""

from functools import partial

import numpy as np
import torch
from bench import in_turns

from fedexp.core.random_streams import stream, streams
from fedexp.core.values import Plan
from fedexp.parts.local.sgd import SGD
from fedexp.training.client.batches import Batches, draw_all, draw_batches, running_losses
from fedexp.training.loop.trainer import Task
from fedexp.training.stacked.batch_schedule import BatchSchedule

TURNS = 50
ROUNDS = {
    "100 clients x 3 steps": (100, SGD(batch_size=20), 45),
    "6 clients x 115 steps": (6, SGD(batch_size=20, epochs=5), 450),
}
NO_CLASSES = np.zeros(0)  # read by rules that go class by class alone
Made = tuple[np.ndarray, np.ndarray, np.ndarray, list[int], np.ndarray]


def row_by_row(rule: SGD, plan: Plan) -> Made:
    """As it was first written: a stream, its batches, their places and their seed for one client after another."""
    batches = [
        draw_batches(rule, len(shard), stream(0, 1, "batches", int(owner)))
        for owner, shard in zip(plan.owner, plan.shards, strict=True)
    ]
    steps = max(each.steps for each in batches)
    width = max(int(each.counts.max(initial=1)) for each in batches)
    index = np.zeros((len(batches), steps, width), np.int64)
    mask = np.zeros((len(batches), steps, width), bool)
    due = np.zeros((steps, len(batches), 1), dtype=np.float32)
    for row, each in enumerate(batches):
        mask[row, : each.steps] = np.arange(width) < each.counts[:, None]
        index[row, : each.steps][mask[row, : each.steps]] = plan.shards[row][each.order]
        due[: each.steps, row, 0] = rule.pulled_steps(each.steps, each.epoch)
    seeds = [int(stream(0, 1, "dropout", int(owner)).integers(2**62)) for owner in plan.owner]
    losses = np.ones((steps, len(batches)), np.float32)
    told = [running_losses(losses[: each.steps, row], each.counts, each.epoch) for row, each in enumerate(batches)]
    return index.transpose(1, 0, 2), mask.transpose(1, 0, 2), due, seeds, np.array(told)


def at_once(rule: SGD, plan: Plan) -> Made:
    """As the stacked engine does it."""
    batches = draw_all([rule] * len(plan.owner), plan.shards, NO_CLASSES, streams(0, 1, "batches", owner=plan.owner))
    return laid_out(rule, plan, batches, seeds=True)


def without_seeds(rule: SGD, plan: Plan) -> Made:
    """The same where nobody draws anything in training."""
    batches = draw_all([rule] * len(plan.owner), plan.shards, NO_CLASSES, streams(0, 1, "batches", owner=plan.owner))
    return laid_out(rule, plan, batches, seeds=False)


def laid_out(rule: SGD, plan: Plan, batches: tuple[Batches, ...], *, seeds: bool) -> Made:
    nothing = torch.zeros(0)
    task, rows = Task(nothing, nothing, plan, batches, 0, 1), np.arange(len(batches))
    table = BatchSchedule.of(batches)
    index, mask = table.examples(plan.shards)
    drawn = task.seeds("dropout", rows if seeds else rows[:1])
    losses = np.ones((len(index), len(batches)), np.float32)
    return index, mask, table.step_flags(rule.pulled_steps), drawn, table.running_losses(losses)


def mask_unused(made: Made) -> Made:
    """Returns `made` with the places that no batch uses set to zero."""
    return np.where(made[1], made[0], 0), *made[1:]


def main() -> None:
    print(f"{'':24}{'row by row':>12}{'at once':>10}{'no draws':>10}  ms")
    for name, (clients, rule, examples) in ROUNDS.items():
        shards = tuple(np.arange(client * examples, (client + 1) * examples) for client in range(clients))
        plan = Plan(np.arange(clients), shards)
        for one, other in zip(mask_unused(row_by_row(rule, plan)), mask_unused(at_once(rule, plan)), strict=True):
            assert np.array_equal(one, other)
        ways = {way.__name__: partial(way, rule, plan) for way in (row_by_row, at_once, without_seeds)}
        best = [1000 * min(seconds) for seconds in in_turns(ways, TURNS).values()]
        print(f"{name:24}{best[0]:12.2f}{best[1]:10.2f}{best[2]:10.2f}")


if __name__ == "__main__":
    main()
