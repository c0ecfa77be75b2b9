"""The start of a round: clients are selected and sent what they train from. A dry run calls it without what follows."""

from functools import partial

import numpy as np
import torch

from fedexp.core.client_rows import positions_of
from fedexp.core.device_arrays import as_matrix, place_rows
from fedexp.core.values import Jobs, Memory, State, Weights
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.context import RoundContext, extra_messages
from fedexp.simulation.personal_columns import restore_personal
from fedexp.simulation.presence import presence_memory
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World


def start(
    exp: Experiment, world: World, state: State, ctx: RoundContext
) -> tuple[Jobs, tuple[Weights, ...], dict[str, Memory]]:
    """Sends out the jobs of a new round; returns them, the models of the round and the memories."""
    mem = {role: without_columns(memory) for role, memory in state.memory.items()}
    mem |= presence_memory(world.presence, ctx.fleet.waited_s)
    plan, mem["selector"] = check_call(exp, "selector", exp.selector.choose, mem.get("selector", {}), ctx)
    models, plan, model, mem["clustering"] = check_call(
        exp, "clustering", exp.clustering.assign, state.models, plan, mem.get("clustering", {}), ctx
    )
    arrivals, mem["pacing"] = check_call(exp, "pacing", exp.pacing.due, plan, models[0], mem.get("pacing", {}), ctx)
    if exp.pacing.overlaps:
        model = np.zeros(len(arrivals.begun), np.int64)
    else:
        model = model[positions_of(arrivals.plan.owner, plan.owner)]
    extra_messages(ctx).arrivals = arrivals
    sent = partial(models_sent, models, arrivals.versions)
    plan_columns = arrivals.plan.owner, arrivals.plan.shards, arrivals.plan.importance, arrivals.plan.deadline_s
    jobs = Jobs(*plan_columns, model=model, begun=arrivals.begun, sent=sent, seconds=arrivals.seconds)
    return jobs, models, mem


def dispatch_versions(
    exp: Experiment, world: World, jobs: Jobs, rounds: list[tuple[int, np.ndarray]], mem: dict[str, Memory]
) -> list[torch.Tensor]:
    """The rows `[n, D]` that the clients of each round start from, given the rounds and the positions of their jobs."""
    pieces = []
    for number, at in rounds:
        owner = jobs.owner[at]
        rows = dispatch(exp, world, jobs.sent(number), jobs.model[at], owner, mem)
        pieces.append(restore_personal(exp, world.layout, owner, rows, mem))
    return pieces


def models_sent(present: tuple[Weights, ...], earlier: dict[int, Weights], number: int) -> tuple[Weights, ...]:
    """The models that clients were sent in a round, given those of this one and of `earlier` ones by number."""
    return (earlier[number],) if number in earlier else present


def positions_by_number(numbers: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Each of the `numbers [C]` of models or of rounds, ascending, with the positions of those that have it."""
    return [(number, np.flatnonzero(numbers == number)) for number in sorted(set(numbers.tolist()))]


def dispatch(
    exp: Experiment,
    world: World,
    models: tuple[Weights, ...],
    model: np.ndarray,
    owner: np.ndarray,
    mem: dict[str, Memory],
) -> torch.Tensor:
    """The rows `[C, D]` that the server sends, given the number of each participant's `model [C]`.

    Every client trains the network of the config, whatever shape the global models have by now.
    """
    memory, positions = mem.get("aggregator", {}), positions_by_number(model)
    if not positions:
        return world.first.flat.expand(0, -1)
    pieces = [
        check_call(exp, "aggregator", exp.aggregator.dispatch, models[number], owner[at], memory.get(str(number), {}))
        for number, at in positions
    ]
    return as_matrix(place_rows(pieces, [at for _, at in positions]))


def without_columns(memory: Memory) -> Memory:
    """A role's memory without the columns that it reported last round."""
    return {name: value for name, value in memory.items() if name != "columns"}
