"""The work of clients: jobs are trained, each by the draws and the rate of the round in which it was begun."""

from dataclasses import replace

import numpy as np
import torch

from fedexp.core.device_arrays import to_device
from fedexp.core.random_streams import streams
from fedexp.core.values import Jobs, Layout, Memory, Trained, Uploads, concatenate_rows
from fedexp.parts.context import Context
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.context import RoundContext
from fedexp.simulation.local_task import make_task, train_task
from fedexp.simulation.messages import private_message_columns
from fedexp.simulation.personal_columns import save_personal
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_all


def work(
    exp: Experiment, world: World, jobs: Jobs, mem: dict[str, Memory], ctx: RoundContext
) -> tuple[Uploads, dict[str, Memory]]:
    """Trains all jobs; returns what clients send, in the order of the jobs, and the updated memories.

    A job's identity is its client and the round in which it was begun, whatever round it is now: jobs that were begun
    together train together, and see the context of their round.
    """
    messages, order = [], []
    for begun in np.unique(jobs.begun).tolist() or [ctx.round]:
        positions = np.flatnonzero(jobs.begun == begun)
        sent, mem = train(exp, world, jobs.where(positions), mem, replace(ctx, round=begun))
        messages.append(sent)
        order.append(positions)
    return concatenate_rows(messages).where(np.argsort(np.concatenate(order))), mem


def train(
    exp: Experiment, world: World, jobs: Jobs, mem: dict[str, Memory], ctx: Context
) -> tuple[Uploads, dict[str, Memory]]:
    """Trains jobs of one round, each on its own batches; returns the messages and the updated memories."""
    rules = [exp.local.with_drawn_epochs(owner, ctx.rng) for owner in jobs.owner.tolist()]
    draws = streams(exp.seed, ctx.round, "batches", owner=jobs.owner)
    batches = draw_all(rules, jobs.shards, world.labels, draws, exp.privacy.sampling)
    task = make_task(exp, jobs.received, jobs, batches, mem.get("local", {}), ctx)
    rows, slot, losses = split_output(train_task(world, task), world.layout, exp.evaluation.loss_columns)
    steps = np.array([client_batches.steps for client_batches in batches], np.int64)
    trained = Trained(jobs.owner, steps, jobs.received, task.start, rows, slot)
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


def split_output(
    out: torch.Tensor, layout: Layout, loss_columns: int
) -> tuple[torch.Tensor, torch.Tensor | None, np.ndarray]:
    """Splits the output into rows `[C, D]`, last slots `[C, P]` (or None) and losses `[C, loss_columns]`."""
    rows, slot = out[:, : layout.size], out[:, layout.size : out.shape[1] - loss_columns]
    return rows, slot if slot.shape[1] else None, out[:, out.shape[1] - loss_columns :].cpu().double().numpy()
