"""The training task of a round's participants, and running it over the workers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from fedexp.core.device_arrays import as_matrix, place_rows
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
    return make_task_of_rounds(exp, [received], plan, batches, memory, [(ctx, np.arange(len(plan.owner)))])


def make_task_of_rounds(
    exp: Experiment,
    received: Sequence[torch.Tensor],
    plan: Plan,
    batches: tuple[Batches, ...],
    memory: Memory,
    rounds: Sequence[tuple[Context, np.ndarray]],
) -> Task:
    """Makes the task of participants who began in `rounds` of one rate, given by contexts and positions.

    `received` are the rows `[n, D]` that those of each round received.
    """
    owner, first, positions = plan.owner, rounds[0][0], [at for _, at in rounds]
    lr = exp.schedule.rate(exp.local, first.round)
    rule = exp.local.at(lr)
    starts, references = [], []
    for rows, (ctx, at) in zip(received, rounds, strict=True):
        arguments = rows, owner[at], memory, ctx
        starts.append(check_call(exp, "local", rule.begin, *arguments))
        if rule.compares:
            references.append(check_call(exp, "local", rule.reference_models, *arguments))
    start_rows, anchor_rows = zip(*starts, strict=True)
    start, anchor = place_rows(start_rows, positions), place_rows(anchor_rows, positions)
    counts = torch.from_numpy(first.clients_data.class_counts(owner)).to(received[0]) if rule.counts_classes else None
    task = Task(start, anchor, plan, batches, exp.seed, first.round, lr, counts=counts)
    if references:
        by_client = as_matrix(place_rows([models.transpose(0, 1) for models in references], positions))
        task = replace(task, reference_rows=by_client.transpose(0, 1))
    if len(rounds) == 1:
        return task
    begun = np.empty(len(owner), np.int64)
    for ctx, at in rounds:
        begun[at] = ctx.round
    return replace(task, begun=begun)


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
    work = Work(world.first.flat.new_zeros((len(task.start), width)), kind=kind, effort=steps, round=task.round)
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
