"""The whole of `fedexp plan`: tries some rounds, counts all, and says what the run will cost."""

import math
import time
from dataclasses import dataclass

from fedexp.plan import forecast
from fedexp.plan.dry_run import DryRun, RunEstimate, find_end, run_dry
from fedexp.plan.forecast import RunOutline, Seconds, count_evaluations, extrapolate
from fedexp.plan.probe import ProbeResult, probe
from fedexp.plan.progress import ProgressReporter
from fedexp.plan.time_budget import BudgetedPool, TimeBudget
from fedexp.run.environment import device_name
from fedexp.run.validate import ValidRun
from fedexp.simulation import context
from fedexp.simulation.build_world import build_world
from fedexp.simulation.messages import message_size
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.setup.row_groups import group_size, readers_of_all_rows
from fedexp.simulation.world import World
from fedexp.training.engine.contract import EngineChoice
from fedexp.training.workers.pool import WorkerPool

EXIT_SHARE = 0.35  # share of the loading time that the interpreter takes to end
ANSWER_S = 15.0  # from the command until the trial ends
LEAST_S, MOST_S = 5.0, 15.0  # for the trial, however long the data took to load
PREPARATION_S = 5.0  # for what the server does before the first round


@dataclass(frozen=True)
class TrafficTotals:
    """What all rounds send, and the fleet's simulated time; `known`, or estimated from the tried rounds.

    With `grows` the estimate is a lower bound: clients are sent more models in each round than in the tried ones.
    """

    mb_down: float | None
    mb_up: float | None
    sim_s: float | None
    known: bool
    grows: bool = False


@dataclass(frozen=True)
class RowsAtOnce:
    """How many clients' messages a process holds at once, and how many models that clients train beside theirs.

    `mb` is the megabytes of both, `needed_by` names the parts that need all messages of a round.
    """

    messages: int
    companions: int
    mb: float
    needed_by: list[str]


@dataclass(frozen=True)
class Versions:
    """How many earlier models clients train on at once, each kept once, and their megabytes; `known`, or at most."""

    models: int
    mb: float
    known: bool


@dataclass(frozen=True)
class Forecast:
    """The cost of a run. What is sent is `known`, or estimated.

    `limit` is "at most", "at least" or "about" if a stop rule decides how many rounds there are; it applies to all that
    grows with them. It is "" if their number is known. `counted` is the number of rounds counted if there were too many
    for all. `parts` names what was tried only in part. If no round ended in time, `gave_up` says so, and what only a
    tried round can tell is None.
    """

    choice: EngineChoice
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
    sent: TrafficTotals
    epsilon: dict[str, float] | None
    delta: float
    disk_mb: float | None
    rows: RowsAtOnce
    versions: Versions | None
    counted: int | None = None


def plan(run: ValidRun, started: float, loaded_s: float, progress: ProgressReporter) -> Forecast:
    """The cost of one run, whose command was given at `started` (`time.perf_counter`) and took `loaded_s` to load."""
    process_s = time.perf_counter() - started + EXIT_SHARE * loaded_s
    progress.begin_step("reading the data")
    preparation = TimeBudget(PREPARATION_S)
    progress.stage = lambda: preparation.stage
    world = build_world(run.exp, None, BudgetedPool(WorkerPool(), preparation))
    exp = world.exp
    elapsed_s = time.perf_counter() - started
    result = probe(exp, world, run.config, progress, min(MOST_S, max(LEAST_S, ANSWER_S - elapsed_s)))
    _add_untried(result, preparation, EXIT_SHARE * loaded_s)
    progress.begin_step("counting all rounds", print_now=False)
    dry_run, counted = usable_dry_run(exp, world)
    rounds, limit, reason = expected_rounds(exp, world, result, dry_run)
    outline = outline_run(exp, world, result, dry_run, rounds)
    spent = memory = gpu = None
    if result.tried_rounds:
        spent = forecast.seconds(result, outline, elapsed_s + preparation.skipped_seconds(0.0, math.inf), process_s)
        memory, gpu = forecast.memory_mb(result, outline)
    return Forecast(
        choice=world.choice,
        device=device_name(exp),
        workers=result.workers,
        rounds=rounds,
        limit=limit,
        parts=result.partial_stages,
        gave_up=result.gave_up,
        reason=reason,
        tried=len(result.tried_rounds),
        seconds=spent,
        memory_mb=memory if result.memory_mb else None,
        gpu_mb=gpu,
        sent=traffic_totals(exp, result, dry_run, rounds),
        epsilon=epsilon(exp, world, result, dry_run, rounds),
        delta=exp.privacy.required_delta,
        counted=counted,
        rows=rows_at_once(exp, world),
        versions=count_versions(exp, world, dry_run, rounds),
        disk_mb=forecast.disk_mb(result, outline, spent.rounds) if spent else None,
    )


def _add_untried(result: ProbeResult, preparation: TimeBudget, exit_s: float) -> None:
    """Adds what is no part of the trial: how the program ends, and what came before the first round."""
    result.closing_s += exit_s
    result.partial_stages = preparation.partial_stages + result.partial_stages


def rows_at_once(exp: Experiment, world: World) -> RowsAtOnce:
    """How many messages lie in memory at once, if as many clients as usual take part."""
    width, readers = message_size(exp, world.layout), readers_of_all_rows(exp)
    clients = world.partition.clients
    participants = min(clients, exp.pacing.most_uploads(exp.usual_participants(clients)))
    messages = participants if readers else min(participants, group_size(width))
    companion = exp.local.companion
    entries = width if companion is None else width + world.with_rule(companion).layout.size
    return RowsAtOnce(messages, messages * (companion is not None), messages * entries * 4 / 1e6, readers)


def count_versions(exp: Experiment, world: World, dry_run: DryRun | None, rounds: int) -> Versions | None:
    """The earlier models that clients train on while the server steps; None where it waits for all."""
    if not exp.pacing.overlaps:
        return None
    models, is_known = min(exp.pacing.most_versions(world.partition.clients), rounds), False
    if dry_run is not None and dry_run.complete:
        models, is_known = max((step.versions for step in dry_run.dry_rounds[:rounds]), default=0), True
    return Versions(models, models * world.layout.size * 4 / 1e6, is_known)


def usable_dry_run(exp: Experiment, world: World) -> tuple[DryRun | None, int | None]:
    """The rounds of the run, and how many of them were counted where they were too many to count all."""
    dry_run = run_dry(exp, world)
    if dry_run is None or dry_run.complete:
        return dry_run, None
    can_end_sooner = exp.stop.needs_clock or exp.stop.needs_privacy  # by what is counted in advance
    return (dry_run if can_end_sooner else None), dry_run.rounds


def expected_rounds(
    exp: Experiment, world: World, result: ProbeResult, dry_run: DryRun | None
) -> tuple[int, str, str | None]:
    """How many rounds there will be, whether that is a limit (`Forecast`), and why the run ends there."""
    if result.reason:
        return len(result.tried_rounds), "", result.reason
    if dry_run is not None:
        return dry_run.rounds, rounds_limit(exp) if dry_run.complete else "at least", dry_run.reason
    estimate = estimate_run(exp, world, result)
    end = estimate and find_end(exp, world, estimate, exp.rounds)
    if end is None:
        return exp.rounds, "at most" if exp.stop.needs_clock else rounds_limit(exp), None
    last, reason = end
    return last, "about" if exp.stop.needs_clock else "at least", reason


def rounds_limit(exp: Experiment) -> str:
    """Says "at most" if the stop rule judges how good the models are, and may thus end the run earlier."""
    return "at most" if exp.stop.looks_at_scores else ""


def estimate_run(exp: Experiment, world: World, result: ProbeResult) -> RunEstimate | None:
    """All rounds estimated from those that were tried; None if the stop rule needs a clock and no round was tried."""
    rows = [tried_round.row for tried_round in result.tried_rounds]
    if exp.stop.needs_clock and not rows:
        return None
    clock = [row["sim_s"] for row in rows] if exp.has_clock and rows else [0.0]
    return RunEstimate(lambda rounds: extrapolate(clock, rounds, growing=True), world.partition.clients)


def outline_run(exp: Experiment, world: World, result: ProbeResult, dry_run: DryRun | None, rounds: int) -> RunOutline:
    """The work of this many rounds."""
    versions = count_versions(exp, world, dry_run, rounds)
    dry_rounds = dry_run.dry_rounds[:rounds] if dry_run else ()
    all_clients = world.partition.clients
    drawn = min(all_clients, exp.usual_participants(all_clients) * rounds)
    clients = len(dry_run.participations(rounds).owner) if dry_run else drawn
    work = tuple(dry_round.work for dry_round in dry_rounds) or None
    versions_mb = versions.mb if versions else 0.0
    looks = count_evaluations(exp, result, dry_run, rounds)
    return RunOutline(rounds, work, clients, looks, exp.checkpoint_s, exp.keep_states, versions_mb)


def traffic_totals(exp: Experiment, result: ProbeResult, dry_run: DryRun | None, rounds: int) -> TrafficTotals:
    """The megabytes and simulated seconds of all rounds, estimated from the tried ones if they cannot be counted."""
    if dry_run is not None:
        dry_rounds = dry_run.dry_rounds[:rounds]
        clock = dry_rounds[-1].sim_s if exp.has_clock else None
        mb_down, mb_up = (sum(getattr(dry_round, name) for dry_round in dry_rounds) for name in ("mb_down", "mb_up"))
        return TrafficTotals(mb_down, mb_up, clock, True)
    rows = [tried_round.row for tried_round in result.tried_rounds]
    if not rows:
        return TrafficTotals(None, None, None, False)
    clock = extrapolate([row["sim_s"] for row in rows], rounds, growing=True) if exp.has_clock else None
    down, up = (extrapolate([row[name] for row in rows], rounds) for name in ("mb_down", "mb_up"))
    grows = not result.is_whole_run and bool(exp.local.judging_fraction)
    return TrafficTotals(down, up, clock, result.is_whole_run, grows)


def epsilon(
    exp: Experiment, world: World, result: ProbeResult, dry_run: DryRun | None, rounds: int
) -> dict[str, float] | None:
    """The ledger's last line by accountant; if it is unknown who takes part, as if every client did in every round."""
    if not exp.privacy.guarantees:
        return None
    if result.is_whole_run:
        row = result.tried_rounds[-1].row
        return {name: float(row[f"privacy.epsilon_{name}"] or 0.0) for name in ("pld", "rdp")}
    expected = RunEstimate(float, world.partition.clients) if dry_run is None else dry_run
    columns = exp.privacy.forecast(expected.participations(rounds), rounds, context.make_context(world, rounds))
    return {name: float(columns[f"epsilon_{name}"] or 0.0) for name in ("pld", "rdp")}
