"""What comes of a round's jobs: clients train, and their messages travel to the server.

Where every part looks at one row at a time, the jobs are done in groups, and each group is reduced to its weighted mean
before the next begins. Legend: C participants, D entries of a model, W of a message.
"""

import logging
from dataclasses import dataclass, replace

import numpy as np

from fedexp.config import roles
from fedexp.core.values import Jobs, Memory, Uploads, concatenate_rows
from fedexp.maths.group_mean import GroupMean
from fedexp.parts.context import Context
from fedexp.process.device_clock import Stopwatch
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.context import RoundContext
from fedexp.simulation.messages import message_size, open_messages
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.setup.row_groups import split_owners
from fedexp.simulation.work import work
from fedexp.simulation.world import World

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Collected:
    """What was `sent`, what `arrived` of it after the fleet's `seconds`, and what is `aggregated`: `[C, D]` each.

    If the jobs were done in groups, the first two have rows without entries, the last is one row, the mean. Uploads
    that were not finite are not in that mean; `dropped` counts them.
    """

    sent: Uploads
    arrived: Uploads
    aggregated: Uploads
    seconds: float
    dropped: int = 0


def collect(
    exp: Experiment, world: World, jobs: Jobs, mem: dict[str, Memory], ctx: RoundContext, clock: Stopwatch
) -> tuple[Collected, dict[str, Memory]]:
    """Does all jobs of a round; returns what came of them, in the order of the jobs, and the memories."""
    groups = split_owners(exp, jobs.owner, message_size(exp, world.layout))
    if len(groups) == 1:
        return exchange(exp, world, jobs, mem, ctx, clock)
    mean, done = GroupMean(), []
    for positions in groups:
        group, mem = exchange(exp, world, jobs.where(positions), mem, ctx, clock)
        votes, dropped = keep_votes(group.arrived)
        mean.add(exp.aggregator.row_weights(votes), votes.delta)
        sent, arrived = group.sent.without_rows(), group.arrived.without_rows()
        done.append(Collected(sent, arrived, votes.where(np.arange(0)), group.seconds, dropped))
    order, dropped = np.argsort(np.concatenate(groups)), sum(group.dropped for group in done)
    report_dropped(ctx, dropped, len(order))
    sent, arrived = (
        concatenate_rows([getattr(group, name) for group in done]).where(order) for name in ("sent", "arrived")
    )
    aggregated = mean_upload(mean, arrived) if mean.weight else done[0].aggregated
    return Collected(sent, arrived, aggregated, done[0].seconds, dropped), mem


def exchange(
    exp: Experiment, world: World, jobs: Jobs, mem: dict[str, Memory], ctx: RoundContext, clock: Stopwatch
) -> tuple[Collected, dict[str, Memory]]:
    """Does jobs together, and takes what clients send through every part between them and the server."""
    sent, mem = work(exp, world, jobs, mem, ctx)
    clock.lap("train_s")
    sent, mem = apply_filters(exp, "leaving", sent, mem, ctx)
    arrived, seconds, mem["fleet"] = deliver(exp, sent, jobs, mem.get("fleet", {}), ctx)
    arrived, mem = apply_filters(exp, "arriving", arrived, mem, ctx)
    sent, arrived = (open_messages(exp, world.layout, messages) for messages in (sent, arrived))
    clock.lap("select_s")
    return Collected(sent, arrived, arrived, seconds), mem


def deliver(exp: Experiment, sent: Uploads, jobs: Jobs, memory: Memory, ctx: Context) -> tuple[Uploads, float, Memory]:
    """What arrives of the messages, and the simulated seconds until then: the timetable of the pacing, or the fleet."""
    if jobs.seconds is not None:
        return sent, jobs.seconds, memory
    return check_call(exp, "fleet", exp.fleet.deliver, sent, jobs, memory, ctx)


def apply_filters(
    exp: Experiment, when: roles.When, uploads: Uploads, mem: dict[str, Memory], ctx: Context
) -> tuple[Uploads, dict[str, Memory]]:
    """Applies the parts of every role that changes uploads at this point; returns uploads and memories."""
    after = {}
    for role in roles.roles_at(when):
        step = getattr(exp.part(role.name), role.step)
        uploads, after[role.name] = check_call(exp, role.name, step, uploads, mem.get(role.name, {}), ctx)
    return uploads, {**mem, **after}


def keep_votes(uploads: Uploads) -> tuple[Uploads, int]:
    """The uploads that count, by owner, and how many are dropped since a row of them is not finite.

    A row that counts for nothing (a client without examples) has no say in any rule.
    """
    usable = uploads.is_finite()
    votes = uploads.where(usable & (uploads.examples * uploads.importance > 0))
    return votes.sort_by_owner(), len(usable) - int(usable.sum())


def report_dropped(ctx: Context, dropped: int, total: int) -> None:
    """Logs how many updates of a round were dropped, if any."""
    if dropped:
        log.warning("round %d: %d of %d updates are not finite and were dropped", ctx.round, dropped, total)


def mean_upload(mean: GroupMean, arrived: Uploads) -> Uploads:
    """One row, the mean, that weighs as much as all whose mean it is."""
    return replace(
        arrived.where(np.arange(1)),
        model=np.zeros(1, np.int64),
        examples=np.ones(1, np.int64),
        importance=np.array([mean.weight]),
        delta=mean.mean().to(arrived.delta.dtype)[None],
    )
