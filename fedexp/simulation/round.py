"""One round: select clients, train them, deliver uploads, aggregate. No algorithm is named here."""

from typing import Any

import numpy as np

from fedexp.config import roles
from fedexp.core.replace_unchecked import replace_unchecked
from fedexp.core.values import Jobs, Memory, State, Uploads, Weights
from fedexp.parts.context import Context
from fedexp.process.device_clock import Stopwatch
from fedexp.simulation import context
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.checks.pending_checks import PendingChecks
from fedexp.simulation.collect import apply_filters, collect, keep_votes, report_dropped
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.start import start, without_columns
from fedexp.simulation.traffic import count_clients, megabytes
from fedexp.simulation.world import World

Row = dict[str, Any]  # a round's line of metrics.csv by column


def run_round(exp: Experiment, world: World, state: State) -> tuple[State, Row, Uploads]:
    """Maps a state to the next: `fold(collect(start(state)))`.

    Also returns the round's row of metrics and the participants' uploads.

    Raises:
        RunError: a model is no longer finite, or a part cannot go on.
        ConfigError: a part does not do what its contract says.
    """
    ctx, clock = context.begin_round(exp, world, state), Stopwatch(world.first.flat.device)
    jobs, models, mem = start(exp, world, state, ctx)
    clock.lap("select_s")

    collected, mem = collect(exp, world, jobs, mem, ctx, clock)
    sent, arrived = collected.sent, collected.arrived
    mem["selector"] = check_call(exp, "selector", exp.selector.observe, arrived, mem["selector"], ctx)
    clock.lap("select_s")
    mem["audit"] = check_call(exp, "audit", exp.audit.observe, sent, mem.get("audit", {}), ctx)

    with PendingChecks() as checks:
        models, mem = fold(exp, models, collected.aggregated, mem, ctx, checks, collected.dropped)
        models, mem["clustering"] = check_call(
            exp, "clustering", exp.clustering.regroup, models, arrived, mem["clustering"], ctx
        )
        checks.expect_finite(models, ctx.round)
        clock.lap("aggregate_s")  # before the host waits for the checks, so that it need not wait for this time, too
    updates = state.updates + count_clients(jobs.owner)
    after = State(ctx.round, models, mem, ctx.fleet.now_s + collected.seconds, state.host_s, updates)
    return after, metrics_row(exp, ctx, after, jobs, sent, arrived) | clock.laps, sent


def fold(  # noqa: PLR0913
    exp: Experiment,
    models: tuple[Weights, ...],
    uploads: Uploads,
    mem: dict[str, Memory],
    ctx: Context,
    checks: PendingChecks,
    dropped_before: int = 0,
) -> tuple[tuple[Weights, ...], dict[str, Memory]]:
    """Updates each model from the finite uploads that were trained from it, in the order of their owners.

    An upload of which any row is not finite is dropped whole, and counted with those dropped before. A model for which
    nothing came, though something came for another, stays as it is, and so do its memories. The last model's numbers
    are left to `checks`.
    """
    voters, dropped = keep_votes(uploads)
    report_dropped(ctx, dropped, len(uploads.owner))
    lr = server_rate(exp, ctx.round, mem.get("pacing", {}))
    exp = replace_unchecked(exp, server_optimizer=exp.server_optimizer.at(lr))
    local_memory = check_call(exp, "local", exp.local.receive, voters, mem.get("local", {}), ctx)
    following, after = (
        list(models),
        {role: without_columns(mem.get(role, {})) for role in roles.role_names(a_model=True)},
    )
    for number in models_to_update(len(models), voters.model):
        model_memories = {role: memory.get(str(number), {}) for role, memory in after.items()}
        model_uploads = voters.where(voters.model == number)
        checks.settle()  # of the model before, so that only one model's uploads are held
        following[number], memories = update_model(exp, models[number], model_uploads, model_memories, ctx, checks)
        for role, memory in after.items():
            memory[str(number)] = memories[role]
    folded = {role: merge_memories(memory) for role, memory in after.items()}
    folded["aggregator"]["columns"] = {"dropped": dropped_before + dropped, **folded["aggregator"]["columns"]}
    return tuple(following), {**mem, **folded, "local": local_memory}


def models_to_update(models: int, upload_models: np.ndarray) -> list[int]:
    """The numbers of the models to update, given the models `[C]` that received uploads.

    Where nothing came, all do: but not the first of several, that nobody trains.
    """
    return np.unique(upload_models).tolist() or list(range(min(1, models - 1), models))


def update_model(
    exp: Experiment,
    weights: Weights,
    uploads: Uploads,
    model_memories: dict[str, Memory],
    ctx: Context,
    checks: PendingChecks,
) -> tuple[Weights, dict[str, Memory]]:
    """Updates one model; also returns the memories of the parts that did so.

    Where the aggregator returns the very model that it was given, as nothing came or it skips the round, the server's
    optimizer reports its columns, but the model and what the optimizer remembers stay.
    """
    mixed, memories = apply_filters(exp, "mixing", uploads, model_memories, ctx)
    proposal, memories["aggregator"] = checks.call(
        exp, "aggregator", exp.aggregator.combine, weights, mixed, model_memories["aggregator"], ctx
    )
    optimizer, memory = exp.server_optimizer, model_memories["server_optimizer"]
    if proposal is weights:
        _, reported = check_call(exp, "server_optimizer", optimizer.step, weights, proposal, memory)
        return weights, memories | {"server_optimizer": memory | {"columns": reported.get("columns", {})}}
    updated, memory = checks.call(exp, "server_optimizer", optimizer.step, weights, proposal, memory)
    return updated, memories | {"server_optimizer": memory}


def server_rate(exp: Experiment, number: int, pacing_memory: Memory) -> float | None:
    """The server's rate in a round; None where it is the optimizer's own in all rounds."""
    scheduled = exp.server_schedule.rate(exp.server_optimizer, number)
    if not exp.pacing.slows_server:
        return scheduled
    return exp.pacing.server_rate(vars(exp.server_optimizer)["lr"] if scheduled is None else scheduled, pacing_memory)


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
    exp: Experiment, ctx: context.RoundContext, state: State, jobs: Jobs, sent: Uploads, uploads: Uploads
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
        "server_lr": server_rate(exp, ctx.round, state.memory.get("pacing", {})),
    }
    return {
        "round": state.round,
        "train_loss": loss,
        "participants": count_clients(sent.owner),
        "examples": int(sent.examples.sum()),
        "sim_s": state.sim_s if exp.has_clock else None,
        **megabytes(exp, ctx, jobs, uploads.owner),
        **{name: rate for name, rate in rates.items() if rate is not None},
        **reported,
    }
