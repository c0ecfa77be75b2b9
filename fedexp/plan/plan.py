"""The whole of `fedexp plan`: tries some rounds, counts all, and says what the run will cost."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedexp.core.part import build
from fedexp.plan import forecast
from fedexp.plan.forecast import Course, Seconds
from fedexp.plan.probe import Findings, probe
from fedexp.plan.ration import Ration, Rationed
from fedexp.plan.rehearsal import Guess, Rehearsal, ending, rehearse
from fedexp.plan.telling import Telling
from fedexp.run.environment import device_name
from fedexp.simulation import compatibility, context
from fedexp.simulation.building import build_world
from fedexp.simulation.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.engine import Choice
from fedexp.training.workers import Crew

LEAVING = 0.35  # share of the loading time that the interpreter takes to end
ANSWER_S = 15.0  # from the command until the trial ends
LEAST_S, MOST_S = 5.0, 15.0  # for the trial, however long the data took to load
PREPARATION_S = 5.0  # for what the server does before the first round


@dataclass(frozen=True)
class Sent:
    """What all rounds send, and the fleet's simulated time; `known`, or estimated from the tried rounds."""

    mb_down: float | None
    mb_up: float | None
    sim_s: float | None
    known: bool


@dataclass(frozen=True)
class Forecast:
    """The cost of a run. What is sent is `known`, or estimated.

    `limit` is "at most", "at least" or "about" if a stop rule decides how many rounds there are; it applies to all that
    grows with them. It is "" if their number is known. `counted` is the number of rounds counted if there were too many
    for all. `parts` names what was tried only in part. If no round ended in time, `gave_up` says so, and what only a
    tried round can tell is None.
    """

    choice: Choice
    device: str
    workers: int
    rounds: int
    limit: str
    reason: str | None
    tried: int
    parts: list[str]
    gave_up: str | None
    seconds: Seconds | None
    memory_mb: float | None
    gpu_mb: float | None
    sent: Sent
    epsilon: dict[str, float] | None
    delta: float
    disk_mb: float | None
    counted: int | None = None


def plan(config: dict[str, Any], begun: float, loaded_s: float, voice: Telling) -> Forecast:
    """The cost of one run, whose command was given at `begun` (`time.perf_counter`) and took `loaded_s` to load."""
    exp: Experiment = build(config)
    compatibility.refuse(exp)
    voice.begin("reading the data")
    before = Ration(PREPARATION_S)
    voice.stage = lambda: before.stage
    world = build_world(exp, None, Rationed(Crew(), before))
    exp = world.exp
    elapsed_s = time.perf_counter() - begun
    found = probe(exp, world, config, voice, min(MOST_S, max(LEAST_S, ANSWER_S - elapsed_s)))
    found.closing_s += LEAVING * loaded_s
    found.parts = before.parts + found.parts
    voice.begin("counting all rounds", aloud=False)
    rehearsal, counted = rehearsed(exp, world)
    rounds, limit, reason = how_many(exp, world, found, rehearsal)
    course = course_of(exp, world, rehearsal, rounds)
    spent = forecast.seconds(found, course, elapsed_s + before.saved(0.0, math.inf)) if found.tried else None
    memory, gpu = forecast.memory_mb(found, course) if found.tried else (None, None)
    return Forecast(
        choice=world.choice,
        device=device_name(exp),
        workers=found.workers,
        rounds=rounds,
        limit=limit,
        parts=found.parts,
        gave_up=found.gave_up,
        reason=reason,
        tried=len(found.tried),
        seconds=spent,
        memory_mb=memory if found.memory_mb else None,
        gpu_mb=gpu,
        sent=sent(exp, found, rehearsal, rounds),
        epsilon=epsilon(exp, world, rehearsal, rounds),
        delta=exp.privacy.bound,
        counted=counted,
        disk_mb=forecast.disk_mb(found, course, spent.rounds) if spent else None,
    )


def rehearsed(exp: Experiment, world: World) -> tuple[Rehearsal | None, int | None]:
    """The rounds of the run, and how many of them were counted where they were too many to count all."""
    rehearsal = rehearse(exp, world)
    if rehearsal is None or rehearsal.whole:
        return rehearsal, None
    return (rehearsal if ends_by_itself(exp) else None), rehearsal.rounds


def ends_by_itself(exp: Experiment) -> bool:
    """Whether the stop rule depends only on what can be counted in advance."""
    return exp.stop.needs_clock or exp.stop.needs_privacy


def how_many(
    exp: Experiment, world: World, found: Findings, rehearsal: Rehearsal | None
) -> tuple[int, str, str | None]:
    """How many rounds there will be, whether that is a limit (`Forecast`), and why the run ends there."""
    if found.reason:
        return len(found.tried), "", found.reason
    if rehearsal is not None:
        return rehearsal.rounds, limit_of(exp) if rehearsal.whole else "at least", rehearsal.reason
    guess = guess_of(exp, world, found)
    end = guess and ending(exp, world, guess, exp.rounds)
    if end is None:
        return exp.rounds, "at most" if exp.stop.needs_clock else limit_of(exp), None
    last, reason = end
    return last, "about" if exp.stop.needs_clock else "at least", reason


def limit_of(exp: Experiment) -> str:
    """Says "at most" if the stop rule looks at validation data, and may thus end the run earlier."""
    return "at most" if exp.stop.needs_validation else ""


def guess_of(exp: Experiment, world: World, found: Findings) -> Guess | None:
    """All rounds estimated from those that were tried; None if the stop rule needs a clock and no round was tried."""
    rows = [each.row for each in found.tried]
    if exp.stop.needs_clock and not rows:
        return None
    clock = [row["sim_s"] for row in rows] if exp.fleet.simulates and rows else [0.0]
    return Guess(lambda rounds: scaled(clock, rounds, growing=True), world.partition.clients)


def course_of(exp: Experiment, world: World, rehearsal: Rehearsal | None, rounds: int) -> Course:
    """The work of this many rounds."""
    acts = rehearsal.acts[:rounds] if rehearsal else ()
    everyone = world.partition.clients
    clients = (
        len(rehearsal.ledgers(rounds)[0].owner) if rehearsal else min(everyone, exp.scenario.participants * rounds)
    )
    work = tuple(act.work for act in acts) or None
    return Course(rounds, work, clients, exp.evaluation.every, exp.checkpoint_s, exp.keep_states)


def sent(exp: Experiment, found: Findings, rehearsal: Rehearsal | None, rounds: int) -> Sent:
    """The megabytes and simulated seconds of all rounds, estimated from the tried ones if they cannot be counted."""
    if rehearsal is not None:
        acts = rehearsal.acts[:rounds]
        clock = acts[-1].sim_s if exp.fleet.simulates else None
        return Sent(sum(act.mb_down for act in acts), sum(act.mb_up for act in acts), clock, True)
    rows = [each.row for each in found.tried]
    if not rows:
        return Sent(None, None, None, False)
    clock = scaled([row["sim_s"] for row in rows], rounds, growing=True) if exp.fleet.simulates else None
    down, up = (scaled([row[name] for row in rows], rounds) for name in ("mb_down", "mb_up"))
    return Sent(down, up, clock, False)


def scaled(tried: Sequence[float], rounds: int, *, growing: bool = False) -> float:
    """The sum over this many rounds: the first once, as it may be unlike the others, then the mean of the others tried.

    With `growing`, the values tried are sums so far.
    """
    each = np.diff(tried, prepend=0.0) if growing else np.array(tried)
    return float(each[0] + (rounds - 1) * (each[1:].mean() if len(each) > 1 else each[0]))


def epsilon(exp: Experiment, world: World, rehearsal: Rehearsal | None, rounds: int) -> dict[str, float] | None:
    """The ledger's last line by accountant; if it is unknown who takes part, as if every client did in every round."""
    if not exp.privacy.guarantees:
        return None
    if rehearsal is not None:
        asked, delivered = rehearsal.ledgers(rounds)
    else:
        asked, delivered = Guess(float, world.partition.clients).ledgers(rounds)
    told = exp.privacy.foresee(asked, delivered, rounds, context.at(world, rounds))
    return {name: float(told[f"epsilon_{name}"] or 0.0) for name in ("pld", "rdp")}
