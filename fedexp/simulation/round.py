"""One round: select clients, train them, deliver uploads, aggregate. No algorithm is named here."""

import logging
from typing import Any

import numpy as np
import torch

from fedexp.config import roles
from fedexp.core.random_streams import streams
from fedexp.core.values import Layout, Memory, Plan, State, Trained, Uploads, Weights, finite
from fedexp.parts.context import Context
from fedexp.process.device_clock import Timestamp, record_timestamp
from fedexp.simulation import context
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.local_task import make_task, train_task
from fedexp.simulation.moving_rates import scheduled_rates
from fedexp.simulation.personal_columns import restore_personal, save_personal, zero_private_columns
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.traffic import count_clients, megabytes
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_all

log = logging.getLogger(__name__)

Row = dict[str, Any]  # a round's line of metrics.csv by column


def run_round(exp: Experiment, world: World, state: State) -> tuple[State, Row, Uploads]:
    """Maps a state to the next; also returns the round's row of metrics and the participants' uploads."""
    ctx, clock = context.make_context(world, state.round + 1, state.models), Stopwatch(world.first.flat.device)
    mem: dict[str, Memory] = {role: without_columns(memory) for role, memory in state.memory.items()}

    plan, mem["selector"] = check_call(exp, "selector", exp.selector.choose, mem.get("selector", {}), ctx)
    models, plan, model, mem["clustering"] = check_call(
        exp, "clustering", exp.clustering.assign, state.models, plan, mem.get("clustering", {}), ctx
    )
    clock.lap("select_s")
    start = dispatch(exp, world, models, model, plan.owner, mem)

    sent, mem = train(exp, world, start, model, plan, mem, ctx)
    clock.lap("train_s")
    sent, mem = apply_filters(exp, "leaving", sent, mem, ctx)
    uploads, seconds, mem["fleet"] = check_call(exp, "fleet", exp.fleet.deliver, sent, plan, mem.get("fleet", {}), ctx)
    uploads, mem = apply_filters(exp, "arriving", uploads, mem, ctx)
    uploads = zero_private_columns(uploads, ctx.traffic.private_columns)
    mem["selector"] = check_call(exp, "selector", exp.selector.observe, uploads, mem["selector"], ctx)
    clock.lap("select_s")
    mem["audit"] = check_call(exp, "audit", exp.audit.observe, sent, mem.get("audit", {}), ctx)

    models, mem = fold(exp, models, uploads, mem, ctx)
    models, mem["clustering"] = check_call(
        exp, "clustering", exp.clustering.regroup, models, uploads, mem["clustering"], ctx
    )
    clock.lap("aggregate_s")
    updates = state.updates + count_clients(plan.owner)
    after = State(ctx.round, models, mem, state.sim_s + seconds, state.host_s, updates)
    return after, metrics_row(exp, ctx, after, plan, sent, uploads) | clock.laps, sent


def dispatch(
    exp: Experiment,
    world: World,
    models: tuple[Weights, ...],
    model: np.ndarray,
    owner: np.ndarray,
    mem: dict[str, Memory],
) -> torch.Tensor:
    """The rows `[C, D]` that participants start from: their model's, with their personal columns restored.

    Every client trains the network of the config, whatever shape the global models have by now.
    """
    memory = mem.get("aggregator", {})
    start = world.first.flat.expand(len(owner), -1)
    for number in np.unique(model).tolist():
        positions = np.flatnonzero(model == number)
        rows = check_call(
            exp, "aggregator", exp.aggregator.dispatch, models[number], owner[positions], memory.get(str(number), {})
        )
        index = torch.from_numpy(positions).to(rows.device)
        start = rows if len(positions) == len(owner) else start.index_copy(0, index, rows)
    return restore_personal(exp, world.layout, owner, start, mem)


def train(  # noqa: PLR0913
    exp: Experiment,
    world: World,
    received: torch.Tensor,
    model: np.ndarray,
    plan: Plan,
    mem: dict[str, Memory],
    ctx: Context,
) -> tuple[Uploads, dict[str, Memory]]:
    """Trains every participant on its own batches; returns the deltas and the updated memories.

    `received [C, D]` is what the server sent, `model [C]` the number of each participant's model.
    """
    rules = [exp.local.with_drawn_epochs(owner, ctx.rng) for owner in plan.owner.tolist()]
    draws = streams(exp.seed, ctx.round, "batches", owner=plan.owner)
    batches = draw_all(rules, plan.sizes, draws, exp.privacy.sampling)
    task = make_task(exp, received, plan, batches, mem.get("local", {}), ctx)
    rows, slot, losses = split_output(train_task(world, task), world.layout, exp.evaluation.loss_columns)
    steps = np.array([client_batches.steps for client_batches in batches], np.int64)
    trained = Trained(plan.owner, steps, received, task.start, rows, slot)
    mem["privacy"] = check_call(
        exp, "privacy", exp.privacy.spend, trained.owner, trained.steps, mem.get("privacy", {}), ctx
    )
    mem["personal"] = save_personal(exp, world.layout, trained, mem.get("personal", {}))
    local = exp.local.at(task.lr)
    delta, mem["local"] = check_call(exp, "local", local.finish, trained, mem.get("local", {}), ctx)
    delta[:, torch.from_numpy(ctx.traffic.private_columns).to(delta.device)] = 0
    importance = np.ones(len(plan.owner)) if plan.importance is None else plan.importance
    exact = losses[:, 2:] if losses.shape[1] > 2 else None
    length = local.effective_steps(trained.steps)
    return Uploads(plan.owner, model, plan.sizes, importance, delta, losses[:, 0], losses[:, 1], exact, length), mem


def split_output(
    out: torch.Tensor, layout: Layout, loss_columns: int
) -> tuple[torch.Tensor, torch.Tensor | None, np.ndarray]:
    """Splits the output into rows `[C, D]`, last slots `[C, P]` (or None) and losses `[C, loss_columns]`."""
    rows, slot = out[:, : layout.size], out[:, layout.size : out.shape[1] - loss_columns]
    return rows, slot if slot.shape[1] else None, out[:, out.shape[1] - loss_columns :].cpu().double().numpy()


def apply_filters(
    exp: Experiment, when: roles.When, uploads: Uploads, mem: dict[str, Memory], ctx: Context
) -> tuple[Uploads, dict[str, Memory]]:
    """Applies the parts of every role that changes uploads at this point; returns uploads and memories."""
    after = {}
    for role in roles.roles_at(when):
        step = getattr(exp.part(role.name), role.step)
        uploads, after[role.name] = check_call(exp, role.name, step, uploads, mem.get(role.name, {}), ctx)
    return uploads, {**mem, **after}


def fold(
    exp: Experiment, models: tuple[Weights, ...], uploads: Uploads, mem: dict[str, Memory], ctx: Context
) -> tuple[tuple[Weights, ...], dict[str, Memory]]:
    """Updates each model from the finite uploads that were trained from it, in the order of their owners.

    A row that counts for nothing (a client without examples) has no say in any rule, and a model rests, with what is
    remembered of it, in a round that brought something for others only.
    """
    usable = finite(uploads.delta)
    if dropped := int((~usable).sum()):
        log.warning("round %d: %d of %d updates are not finite and were dropped", ctx.round, dropped, len(usable))
    voters = uploads.where(usable & (uploads.examples * uploads.importance > 0)).sort_by_owner()
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
    return tuple(following), {**mem, **folded}


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
    proposal, aggregator_memory = check_call(
        exp, "aggregator", exp.aggregator.combine, weights, mixed, model_memories["aggregator"], ctx
    )
    lr = exp.server_schedule.rate(exp.server_optimizer, ctx.round)
    step = exp.server_optimizer.at(lr).step
    updated, optimizer_memory = check_call(
        exp, "server_optimizer", step, weights, proposal, model_memories["server_optimizer"]
    )
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
    return {
        "round": state.round,
        "train_loss": loss,
        "participants": count_clients(sent.owner),
        "examples": int(sent.examples.sum()),
        "sim_s": state.sim_s if exp.fleet.simulates else None,
        **megabytes(exp, ctx, plan, uploads.owner),
    } | (scheduled_rates(exp, ctx.round) | reported)


def without_columns(memory: Memory) -> Memory:
    """A role's memory without the columns that it reported last round."""
    return {name: value for name, value in memory.items() if name != "columns"}


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
