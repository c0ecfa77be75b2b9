"""The training task of a round's participants, and running it over the workers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import torch

from fedexp.core.device_arrays import join_rows
from fedexp.core.values import Memory, Plan, Weights
from fedexp.parts.context import Context
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.client.batches import Batches
from fedexp.training.loop.trainer import Task
from fedexp.training.workers.pool import TRAINING, JobKind, Work


def make_task(
    exp: Experiment, received: torch.Tensor, plan: Plan, batches: tuple[Batches, ...], memory: Memory, ctx: Context
) -> Task:
    """Makes the task of a plan's participants from the rows that they `received [C, D]`, at its learning rate."""
    lr = exp.schedule.rate(exp.local, ctx.round)
    rule = exp.local.at(lr)
    start, anchor = check_call(exp, "local", rule.begin, received, plan.owner, memory, ctx)
    reference_rows = (
        check_call(exp, "local", rule.reference_models, received, plan.owner, memory, ctx) if rule.compares else None
    )
    counts = torch.from_numpy(ctx.clients_data.class_counts(plan.owner)).to(received) if rule.counts_classes else None
    return Task(start, anchor, plan, batches, exp.seed, ctx.round, lr, reference_rows=reference_rows, counts=counts)


def merge_tasks(tasks: Sequence[Task]) -> Task:
    """One task of the rows of several that have the same rate, one after another."""
    if len(tasks) == 1:
        return tasks[0]
    begun = np.concatenate([np.full(len(task.start), task.round) for task in tasks])
    references = [task.reference_rows for task in tasks if task.reference_rows is not None]
    counts = [task.counts for task in tasks if task.counts is not None]
    return replace(
        tasks[0],
        start=join_rows([task.start for task in tasks]),
        anchor=join_rows([task.anchor for task in tasks]),
        plan=Plan(
            np.concatenate([task.plan.owner for task in tasks]),
            tuple(chain.from_iterable(task.plan.shards for task in tasks)),
        ),
        batches=tuple(chain.from_iterable(task.batches for task in tasks)),
        reference_rows=torch.cat(references, dim=1) if references else None,
        counts=torch.cat(counts) if counts else None,
        begun=begun,
    )


def train_task(world: World, task: Task) -> torch.Tensor:
    """Trains all rows of a task over the workers; returns `[C, W]`, what `train_rows` does of each."""
    return run_task(world, task, world.exp.evaluation.loss_columns, partial(train_rows, world))


def run_task(
    world: World,
    task: Task,
    loss_columns: int,
    run: Callable[[Task, np.ndarray], torch.Tensor],
    kind: JobKind = TRAINING,
) -> torch.Tensor:
    """Runs a task in groups of rows over the workers; returns `[C, D + loss_columns]`.

    With a local rule that needs its slot (momentum, say) after the last step, `[C, D + P + loss_columns]`.
    """
    steps = np.array([batches.steps for batches in task.batches], dtype=float)
    width = world.layout.size + world.layout.parameters * world.exp.local.finish_needs_slot + loss_columns
    work = Work(task.start.new_zeros((len(task.start), width)), kind=kind, effort=steps, round=task.round)
    task = replace(task, watch=world.pool.watch)
    for rows in world.trainer.groups(task, world.pool.size):
        work.jobs.append((rows, partial(run, task, rows)))
    world.pool.execute(work)
    return work.out


def train_rows(world: World, task: Task, rows: np.ndarray) -> torch.Tensor:
    """Trains the rows `[n]` of a task; with exact client losses appends the losses before and after."""
    out = world.trainer.run(task, rows)
    if world.exp.evaluation.client_losses == "running":
        return out
    exact = out.new_empty((len(rows), 2))
    for position, number in enumerate(rows.tolist()):
        index = world.train.to_device(task.plan.shards[number])
        before, after = task.start[number], out[position, : world.layout.size]
        for column, row in enumerate((before, after)):
            exact[position, column] = world.scorer.mean_loss(Weights(row, world.layout), world.train, index)
    return torch.cat([out, exact], dim=1)
