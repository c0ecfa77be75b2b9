"""Checks of who takes part in a round: plans, and who arrives.

Every check gives in words what is wrong, or None. Legend: C participants, n clients.
"""

from typing import Any

import numpy as np

from fedexp.core.fields import describe_value
from fedexp.core.values import SERVER, Plan
from fedexp.parts.pacing.contract import Arrivals
from fedexp.simulation.checks.value_checks import check_models, check_values

EXPECTED = ("bool", "float64"), ("whether each is there", "until when that holds")  # of a timeline


def check_participants(plan: Plan, ctx: Any) -> str | None:
    """Checks that a plan, whose fields have the right types, names existing clients, each once, with a shard each."""
    owner, shards = plan.owner, plan.shards
    if not isinstance(owner, np.ndarray) or owner.ndim != 1 or owner.dtype.kind != "i":
        return f"a Plan whose owner is an array of whole numbers [C], got {describe_value(owner)}"
    unknown = owner[(owner < SERVER) | (owner >= ctx.clients)]
    if len(unknown):
        return f"clients from 0 to {ctx.clients - 1}, got client {unknown[0]}"
    if len(set(owner.tolist())) < len(owner):
        clients, times = np.unique(owner, return_counts=True)
        return f"each client once, got client {clients[times > 1][0]} {times.max()} times"
    if len(shards) != len(owner) or any(
        not isinstance(shard, np.ndarray) or shard.dtype.kind not in "iu" for shard in shards
    ):
        return f"a Plan with an array of example numbers a client, got {len(shards)} shards for {len(owner)} clients"
    importance = plan.importance
    if importance is not None and not (len(importance) == len(owner) and (importance >= 0).all()):
        return f"a Plan whose importance is a number >= 0 a client, got {importance}"
    return None


def check_choice(answer: Any, _: Any, ctx: Any) -> str | None:
    """Checks a plan, of which no client may train on what it was sent before, and which may end no step."""
    if fault := check_values(answer, Plan, dict) or check_participants(answer[0], ctx):
        return fault
    deadline_s = answer[0].deadline_s
    if deadline_s is not None and ctx.fleet.capacity is not None:
        return (
            f"a Plan without deadline_s where ctx.fleet.capacity is a number, got {deadline_s:g}: clients train on "
            "while the server steps, so no round ends; say needs_cohort in the class"
        )
    busy = answer[0].owner[np.isin(answer[0].owner, ctx.fleet.busy)]
    return f"clients that are not in ctx.fleet.busy, got client {busy.min()}" if len(busy) else None


def check_arrivals(answer: Any, *args: Any) -> str | None:
    """Checks who arrives: a plan, and a step for each of its clients that has begun."""
    if fault := check_values(answer, Arrivals, dict):
        return fault
    arrivals, ctx = answer[0], args[-1]
    if fault := check_participants(arrivals.plan, ctx):
        return fault
    if arrivals.begun.shape != arrivals.plan.owner.shape or arrivals.begun.dtype.kind != "i":
        return (
            f"the step in which each of {len(arrivals.plan.owner)} clients began, got {describe_value(arrivals.begun)}"
        )
    begun = sorted(set(arrivals.begun.tolist()))
    if unknown := [step for step in begun if step != ctx.round and step not in arrivals.versions]:
        return f"a version of the model for each step that clients began in, got none for {unknown[0]}"
    used = tuple(arrivals.versions[step] for step in begun if step in arrivals.versions)
    return check_clock(arrivals, ctx) or (check_models(used, (args[1],)) if used else None)


def check_clock(arrivals: Arrivals, ctx: Any) -> str | None:
    """Checks how long a step took, and who began in it."""
    if arrivals.seconds is not None and not 0 <= arrivals.seconds < np.inf:
        return f"seconds that are None or a number >= 0, got {arrivals.seconds}"
    if arrivals.began is None:
        return None
    if arrivals.began.ndim != 1 or arrivals.began.dtype.kind != "i":
        return f"who began, an array of whole numbers [b], got {describe_value(arrivals.began)}"
    unknown = arrivals.began[(arrivals.began < SERVER) | (arrivals.began >= ctx.clients)]
    return f"clients that began, from 0 to {ctx.clients - 1}, got client {unknown[0]}" if len(unknown) else None


def check_timeline(answer: Any) -> str | None:
    """Checks for what tells of clients and a time who is there."""
    return None if callable(answer) else f"a function of clients and a time, got {describe_value(answer)}"


def check_presence(answer: Any, owner: np.ndarray, now_s: float) -> str | None:
    """Checks whether each of the clients `owner [n]` is there, and until when that holds."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        return f"a function to who is there and until when, got {describe_value(answer)}"
    for value, kind, name in zip(answer, *EXPECTED, strict=True):
        if not isinstance(value, np.ndarray) or value.dtype != kind or value.shape != owner.shape:
            return f"a function to {name}, {kind} [n], got {describe_value(value)} for {len(owner)} clients"
    odd = answer[1][~(answer[1] > now_s)]
    return f"times later than {now_s}, until when an answer holds, got {odd[0]}" if len(odd) else None
