"""One round: select clients, train them, deliver uploads, aggregate. No algorithm is named here."""

import logging
from typing import Any

import numpy as np
import torch

from fedexp.config import roles
from fedexp.core.values import Memory, Plan, State, Uploads, Weights
from fedexp.parts.context import Context
from fedexp.process.device_clock import Timestamp, record_timestamp
from fedexp.simulation import context
from fedexp.simulation.messages import open_messages
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.start import start, without_columns
from fedexp.simulation.traffic import count_clients, megabytes
from fedexp.simulation.work import work
from fedexp.simulation.world import World

log = logging.getLogger(__name__)

Row = dict[str, Any]  # a round's line of metrics.csv by column


def run_round(exp: Experiment, world: World, state: State) -> tuple[State, Row, Uploads]:
    """Maps a state to the next: `fold(work(start(state)))`.

    Also returns the round's row of metrics and the participants' uploads.
    """
    ctx, clock = context.make_context(world, state.round + 1, state.models), Stopwatch(world.first.flat.device)
    jobs, models, mem = start(exp, world, state, ctx)
    clock.lap("select_s")

    sent, mem = work(exp, world, jobs, mem, ctx)
    clock.lap("train_s")
    sent, mem = apply_filters(exp, "leaving", sent, mem, ctx)
    uploads, seconds, mem["fleet"] = exp.fleet.deliver(sent, jobs, mem.get("fleet", {}), ctx)
    uploads, mem = apply_filters(exp, "arriving", uploads, mem, ctx)
    sent, uploads = (open_messages(exp, world.layout, messages) for messages in (sent, uploads))
    mem["selector"] = exp.selector.observe(uploads, mem["selector"], ctx)
    clock.lap("select_s")
    mem["audit"] = exp.audit.observe(sent, mem.get("audit", {}), ctx)

    models, mem = fold(exp, models, uploads, mem, ctx)
    models, mem["clustering"] = exp.clustering.regroup(models, uploads, mem["clustering"], ctx)
    clock.lap("aggregate_s")
    after = State(
        ctx.round, models, mem, state.sim_s + seconds, state.host_s, state.updates + count_clients(jobs.owner)
    )
    return after, metrics_row(exp, ctx, after, jobs, sent, uploads) | clock.laps, sent


def apply_filters(
    exp: Experiment, when: roles.When, uploads: Uploads, mem: dict[str, Memory], ctx: Context
) -> tuple[Uploads, dict[str, Memory]]:
    """Applies the parts of every role that changes uploads at this point; returns uploads and memories."""
    after = {}
    for role in roles.roles_at(when):
        uploads, after[role.name] = getattr(exp.part(role.name), role.step)(uploads, mem.get(role.name, {}), ctx)
    return uploads, {**mem, **after}


def fold(
    exp: Experiment, models: tuple[Weights, ...], uploads: Uploads, mem: dict[str, Memory], ctx: Context
) -> tuple[tuple[Weights, ...], dict[str, Memory]]:
    """Updates each model from the finite uploads that were trained from it, in the order of their owners.

    An upload of which any row is not finite is dropped whole. A row that counts for nothing (a client without examples)
    has no say in any rule, and a model rests, with what is remembered of it, in a round that brought something for
    others only.
    """
    usable = uploads.is_finite()
    if dropped := int((~usable).sum()):
        log.warning("round %d: %d of %d updates are not finite and were dropped", ctx.round, dropped, len(usable))
    voters = uploads.where(usable & (uploads.examples * uploads.importance > 0)).sort_by_owner()
    local_memory = exp.local.receive(voters, mem.get("local", {}), ctx)
    following, after = (
        list(models),
        {role: without_columns(mem.get(role, {})) for role in roles.role_names(a_model=True)},
    )
    for number in models_to_update(len(models), voters.model):
        model_memories = {role: memory.get(str(number), {}) for role, memory in after.items()}
        model_uploads = voters.where(voters.model == number)
        following[number], memories = update_model(exp, models[number], model_uploads, model_memories, ctx)
        for role, memory in after.items():
            memory[str(number)] = memories[role]
    folded = {role: merge_memories(memory) for role, memory in after.items()}
    folded["aggregator"]["columns"] = {"dropped": dropped, **folded["aggregator"]["columns"]}
    return tuple(following), {**mem, **folded, "local": local_memory}


def models_to_update(models: int, upload_models: np.ndarray) -> list[int]:
    """The numbers of the models to update, given the models `[C]` that received uploads.

    Where nothing came, all do: but not the first of several, that nobody trains.
    """
    return np.unique(upload_models).tolist() or list(range(min(1, models - 1), models))


def update_model(
    exp: Experiment, weights: Weights, uploads: Uploads, model_memories: dict[str, Memory], ctx: Context
) -> tuple[Weights, dict[str, Memory]]:
    """Updates one model; also returns the memories of the parts that did so."""
    mixed, memories = apply_filters(exp, "mixing", uploads, model_memories, ctx)
    proposal, aggregator_memory = exp.aggregator.combine(weights, mixed, model_memories["aggregator"], ctx)
    lr = exp.server_schedule.rate(exp.server_optimizer, ctx.round)
    updated, optimizer_memory = exp.server_optimizer.at(lr).step(weights, proposal, model_memories["server_optimizer"])
    return updated, memories | {"aggregator": aggregator_memory, "server_optimizer": optimizer_memory}


def merge_memories(memories: dict[str, Memory]) -> Memory:
    """Merges a part's memories of all models, and its reported columns: counts added, other numbers averaged."""
    reports = [memory.get("columns", {}) for memory in memories.values()]
    names = dict.fromkeys(name for report in reports for name in report)
    columns = {name: merge_values([report[name] for report in reports if name in report]) for name in names}
    return {key: without_columns(memory) for key, memory in memories.items()} | {"columns": columns}


def merge_values(values: list[float | None]) -> float | None:
    """Merges several models' numbers: integers are added, others averaged; None if there is none."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    return sum(present) if all(isinstance(value, int) for value in present) else float(np.mean(present))


def metrics_row(
    exp: Experiment, ctx: context.RoundContext, state: State, plan: Plan, sent: Uploads, uploads: Uploads
) -> Row:
    """The round's row of metrics.csv without what is evaluated later."""
    trained = ~np.isnan(sent.loss_after)
    loss = np.average(sent.loss_after[trained], weights=sent.examples[trained]) if trained.any() else None
    reported = {
        f"{role}.{name}": value
        for role, memory in state.memory.items()
        for name, value in memory.get("columns", {}).items()
    }
    rates = {
        "lr": exp.schedule.rate(exp.local, ctx.round),
        "server_lr": exp.server_schedule.rate(exp.server_optimizer, ctx.round),
    }
    return {
        "round": state.round,
        "train_loss": loss,
        "participants": count_clients(sent.owner),
        "examples": int(sent.examples.sum()),
        "sim_s": state.sim_s if exp.fleet.simulates else None,
        **megabytes(exp, ctx, plan, uploads.owner),
        **{name: rate for name, rate in rates.items() if rate is not None},
        **reported,
    }


class Stopwatch:
    """Seconds of each stage of a round on a device."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.start = device, record_timestamp(device)
        self.ends: list[tuple[str, Timestamp]] = []

    def lap(self, stage: str) -> None:
        """Assigns the time since the last lap to a stage."""
        self.ends.append((stage, record_timestamp(self.device)))

    @property
    def laps(self) -> dict[str, float]:
        """Seconds of each stage; waits until the last one is over."""
        seconds: dict[str, float] = {}
        last = self.start
        for stage, end in self.ends:
            seconds[stage] = seconds.get(stage, 0.0) + last.seconds_until(end)
            last = end
        return seconds
