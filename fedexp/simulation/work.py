"""The work of clients: jobs are trained, each by the draws and the rate of the round in which it was begun."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from fedexp.core.device_arrays import as_index, to_device
from fedexp.core.random_streams import streams
from fedexp.core.values import Jobs, Layout, Memory, Trained, Uploads, concatenate_rows
from fedexp.parts.context import Context
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.context import RoundContext, make_context
from fedexp.simulation.local_task import make_task, merge_tasks, train_task
from fedexp.simulation.messages import private_message_columns
from fedexp.simulation.personal_columns import save_personal
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.start import dispatch_versions, rows_by_round
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_all
from fedexp.training.loop.trainer import Task


@dataclass(frozen=True)
class RoundJobs:
    """The jobs that were begun in one round, what their clients `received [C, D]`, that round's context, their task."""

    jobs: Jobs
    received: torch.Tensor
    ctx: Context
    task: Task


def work(
    exp: Experiment, world: World, jobs: Jobs, mem: dict[str, Memory], ctx: RoundContext
) -> tuple[Uploads, dict[str, Memory]]:
    """Trains all jobs; returns what clients send, in the order of the jobs, and the updated memories.

    A job's identity is its client and the round in which it was begun, whatever round it is now: jobs that were begun
    together see the context of their round, and those of one rate train in one stack.
    """
    positions, received = rows_by_round(jobs.begun), dispatch_versions(exp, world, jobs, mem)
    groups = [prepare(exp, world, jobs.where(rows), rows_at(received, rows), mem, ctx) for rows in positions]
    messages = []
    for group, out in zip(groups, train_tasks(world, [group.task for group in groups]), strict=True):
        sent, mem = finish(exp, world, group, out, mem)
        messages.append(sent)
    mem = train_companions(exp, world, groups, mem)
    return concatenate_rows(messages).where(np.argsort(np.concatenate(positions))), mem


def rows_at(received: torch.Tensor, positions: np.ndarray) -> torch.Tensor:
    """The rows `[n, D]` at `positions [n]` of `received [C, D]`; no copy of neighbours, or where all are one row."""
    return received[slice(len(positions)) if received.stride(0) == 0 else as_index(positions, received.device)]


def prepare(
    exp: Experiment, world: World, jobs: Jobs, received: torch.Tensor, mem: dict[str, Memory], ctx: RoundContext
) -> RoundJobs:
    """Makes the task of jobs that were begun in one round and `received [C, D]`, each with its own batches."""
    then = replace(ctx, round=int(jobs.begun[0])) if len(jobs.begun) else ctx
    rules = [exp.local.with_drawn_epochs(owner, then.rng) for owner in jobs.owner.tolist()]
    draws = streams(exp.seed, then.round, "batches", owner=jobs.owner)
    batches = draw_all(rules, jobs.shards, world.labels, draws, exp.privacy.sampling)
    return RoundJobs(jobs, received, then, make_task(exp, received, jobs, batches, mem.get("local", {}), then))


def train_tasks(world: World, tasks: list[Task]) -> list[torch.Tensor]:
    """Trains tasks, those of one rate in one stack; the rows that come of each, `[C, W]`."""
    outputs: dict[int, torch.Tensor] = {}
    for lr in dict.fromkeys(task.lr for task in tasks):
        numbers = [number for number, task in enumerate(tasks) if task.lr == lr]
        out = train_task(world, merge_tasks([tasks[number] for number in numbers]))
        outputs |= zip(numbers, out.split([len(tasks[number].start) for number in numbers]), strict=True)
    return [outputs[number] for number in range(len(tasks))]


def finish(
    exp: Experiment, world: World, group: RoundJobs, out: torch.Tensor, mem: dict[str, Memory]
) -> tuple[Uploads, dict[str, Memory]]:
    """The messages of jobs, from the rows `out [C, W]` that came of their task, and the updated memories."""
    jobs, task, ctx = group.jobs, group.task, group.ctx
    trained, losses = read_output(world, group, out)
    mem = {**mem}
    mem["privacy"] = check_call(
        exp, "privacy", exp.privacy.spend, trained.owner, trained.steps, mem.get("privacy", {}), ctx
    )
    mem["personal"] = save_personal(exp, world.layout, trained, mem.get("personal", {}))
    local = exp.local.at(task.lr)
    message, mem["local"] = check_call(exp, "local", local.finish, trained, mem.get("local", {}), ctx)
    if len(private := private_message_columns(exp, world.layout)):
        message[:, to_device(private, message.device)] = 0
    importance = np.ones(len(jobs.owner)) if jobs.importance is None else jobs.importance
    exact = losses[:, 2:] if losses.shape[1] > 2 else None
    length = local.effective_steps(trained.steps)
    columns = jobs.owner, jobs.model, jobs.sizes, importance, message, losses[:, 0], losses[:, 1], exact, length
    return Uploads(*columns), mem


def train_companions(
    exp: Experiment, world: World, groups: list[RoundJobs], mem: dict[str, Memory]
) -> dict[str, Memory]:
    """Trains the models of their own that participants have beside the one that they send, if their rule says so.

    They see the same batches. Returns the updated memories; nothing else of it is seen by anybody.
    """
    if exp.local.companion is None:
        return mem
    beside, memory = world.with_rule(exp.local.companion), mem.get("companion", {})
    rule, companions = beside.exp.local, []
    for group in groups:
        ctx, received = (
            make_context(beside, group.ctx.round),
            beside.exp.local.extend_rows(group.received, world.layout),
        )
        task = make_task(beside.exp, received, group.jobs, group.task.batches, memory, ctx)
        companions.append(RoundJobs(group.jobs, received, ctx, task))
    for group, out in zip(companions, train_tasks(beside, [group.task for group in companions]), strict=True):
        trained, _ = read_output(beside, group, out)
        _, memory = rule.at(group.task.lr).finish(trained, memory, group.ctx)
    return {**mem, "companion": memory}


def read_output(world: World, group: RoundJobs, out: torch.Tensor) -> tuple[Trained, np.ndarray]:
    """What clients ended with, and their losses `[C, loss_columns]`, from the rows `out [C, W]` of their task."""
    rows, slot, losses = split_output(out, world.layout, world.exp.evaluation.loss_columns)
    steps = np.array([client_batches.steps for client_batches in group.task.batches], np.int64)
    return Trained(group.jobs.owner, steps, group.received, group.task.start, rows, slot), losses


def split_output(
    out: torch.Tensor, layout: Layout, loss_columns: int
) -> tuple[torch.Tensor, torch.Tensor | None, np.ndarray]:
    """Splits the output into rows `[C, D]`, last slots `[C, P]` (or None) and losses `[C, loss_columns]`."""
    rows, slot = out[:, : layout.size], out[:, layout.size : out.shape[1] - loss_columns]
    return rows, slot if slot.shape[1] else None, out[:, out.shape[1] - loss_columns :].cpu().double().numpy()
