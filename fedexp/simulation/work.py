"""The work of clients: jobs are trained, each by the draws and the rate of the round in which it was begun."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from fedexp.core.device_arrays import Rows, as_index, as_matrix, place_rows, to_device
from fedexp.core.random_streams import streams_by_round
from fedexp.core.values import SERVER, Jobs, Layout, Memory, Trained, Uploads, concatenate_rows
from fedexp.parts.context import Context
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.context import RoundContext, make_context
from fedexp.simulation.local_task import make_task_of_rounds, train_task
from fedexp.simulation.messages import private_message_columns
from fedexp.simulation.personal_columns import save_personal
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.start import dispatch_versions, positions_by_number
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_all
from fedexp.training.loop.trainer import Task


@dataclass(frozen=True)
class JobGroup:
    """Jobs of one rate, and how their clients train.

    `received [C, D]` is what the clients were sent. `rounds` has a context with the number and the draws of each round
    in which jobs were begun, with the positions of these. `completed [C]` says who trains to the end.
    """

    jobs: Jobs
    rounds: Sequence[tuple[Context, np.ndarray]]
    received: Rows
    task: Task
    completed: np.ndarray | bool


def work(
    exp: Experiment, world: World, jobs: Jobs, mem: dict[str, Memory], ctx: RoundContext
) -> tuple[Uploads, dict[str, Memory]]:
    """Trains all jobs; returns what clients send, in the order of the jobs, and the updated memories.

    A job's identity is its client and the round in which it was begun, whatever round it is now: jobs that were begun
    together see the context of their round, and those of one rate train in one stack.
    """
    positions = rows_by_rate(exp, jobs.begun)
    groups = [prepare(exp, world, jobs.where(rows), mem, ctx) for rows in positions]
    outputs, messages = [train_task(world, group.task) for group in groups], []
    for group, out in zip(groups, outputs, strict=True):
        sent, mem = finish(exp, world, group, out, mem, ctx)
        messages.append(sent)
    mem = train_companions(exp, world, groups, mem, ctx)
    return concatenate_rows(messages).where(np.argsort(np.concatenate(positions))), mem


def rows_by_rate(exp: Experiment, begun: np.ndarray) -> list[np.ndarray]:
    """The positions `[n]` of the jobs of each rate, by the rounds `begun [C]`; one group of none without jobs."""
    rates = {number: exp.schedule.rate(exp.local, number) for number in np.unique(begun).tolist()}
    numbers = [[number for number in rates if rates[number] == rate] for rate in dict.fromkeys(rates.values())]
    return [np.flatnonzero(np.isin(begun, group)) for group in numbers] or [np.arange(0)]


def prepare(exp: Experiment, world: World, jobs: Jobs, mem: dict[str, Memory], ctx: RoundContext) -> JobGroup:
    """Makes the task of jobs of one rate, each with its own batches."""
    numbers = positions_by_number(jobs.begun) or [(ctx.round, np.arange(0))]
    contexts = {number: replace(ctx, round=number) for number, _ in numbers}
    begun = zip(jobs.owner.tolist(), jobs.begun.tolist(), strict=True)
    rules = [exp.local.with_drawn_epochs(client, contexts[number].rng) for client, number in begun]
    draws = streams_by_round(exp.seed, jobs.begun, "batches", jobs.owner)
    batches = draw_all(rules, jobs.shards, world.labels, draws, exp.privacy.sampling)
    pieces = dispatch_versions(exp, world, jobs, numbers, mem)
    received = place_rows(pieces, [positions for _, positions in numbers])
    rounds = [(contexts[number], positions) for number, positions in numbers]
    task = make_task_of_rounds(exp, pieces, jobs, batches, mem.get("local", {}), rounds)
    return JobGroup(jobs, rounds, received, task, completed_jobs(exp, jobs, ctx))


def completed_jobs(exp: Experiment, jobs: Jobs, ctx: Context) -> np.ndarray | bool:
    """Which clients train to the end, bool [C]; where the server steps meanwhile, only such jobs are done."""
    if exp.pacing.overlaps or not exp.loses_clients:
        return True
    completed, clients = np.ones(len(jobs.owner), bool), jobs.owner != SERVER
    completed[clients] = exp.fleet.completes(jobs.owner[clients], ctx)
    return completed


def finish(
    exp: Experiment, world: World, group: JobGroup, out: torch.Tensor, mem: dict[str, Memory], ctx: Context
) -> tuple[Uploads, dict[str, Memory]]:
    """The messages of jobs, from the rows `out [C, W]` that came of their task, and the updated memories."""
    jobs, task = group.jobs, group.task
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
    exp: Experiment, world: World, groups: list[JobGroup], mem: dict[str, Memory], ctx: Context
) -> dict[str, Memory]:
    """Trains the models of their own that participants have beside the one that they send, if their rule says so.

    They see the same batches. Returns the updated memories; nothing else of it is seen by anybody.
    """
    if exp.local.companion is None:
        return mem
    beside, memory = world.with_rule(exp.local.companion), mem.get("companion", {})
    companions = []
    for group in groups:
        rounds = [(make_context(beside, then.round), positions) for then, positions in group.rounds]
        received = beside.exp.local.extend_rows(as_matrix(group.received), world.layout)
        pieces = [received[as_index(positions, received.device)] for _, positions in rounds]
        task = make_task_of_rounds(beside.exp, pieces, group.jobs, group.task.batches, memory, rounds)
        companions.append(JobGroup(group.jobs, rounds, received, task, group.completed))
    for group, out in zip(companions, [train_task(beside, group.task) for group in companions], strict=True):
        trained, rule = read_output(beside, group, out)[0], beside.exp.local.at(group.task.lr)
        _, memory = rule.finish(trained, memory, make_context(beside, ctx.round))
    return {**mem, "companion": memory}


def read_output(world: World, group: JobGroup, out: torch.Tensor) -> tuple[Trained, np.ndarray]:
    """What clients ended with, and their losses `[C, loss_columns]`, from the rows `out [C, W]` of their task."""
    rows, slot, losses = split_output(out, world.layout, world.exp.evaluation.loss_columns)
    steps = np.array([client_batches.steps for client_batches in group.task.batches], np.int64)
    return Trained(group.jobs.owner, steps, group.received, group.task.start, rows, slot, group.completed), losses


def split_output(
    out: torch.Tensor, layout: Layout, loss_columns: int
) -> tuple[torch.Tensor, torch.Tensor | None, np.ndarray]:
    """Splits the output into rows `[C, D]`, last slots `[C, P]` (or None) and losses `[C, loss_columns]`."""
    rows, slot = out[:, : layout.size], out[:, layout.size : out.shape[1] - loss_columns]
    return rows, slot if slot.shape[1] else None, out[:, out.shape[1] - loss_columns :].cpu().double().numpy()
