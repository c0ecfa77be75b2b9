"""Tries two rounds of a run, or a few more, in a temporary folder."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from fedexp.core.values import State, Uploads
from fedexp.parts.tracker.contract import Tracker
from fedexp.plan.alarm import GivenUp, given_up_after
from fedexp.plan.footprint import gpu_mb, peak_mb, workers_mb
from fedexp.plan.ration import EnoughError, Ration, Rationed
from fedexp.plan.rehearsal import trains_together, work
from fedexp.plan.telling import Telling
from fedexp.run import checkpoint
from fedexp.run.logbook import Logbook
from fedexp.run.progress import Silent
from fedexp.simulation import context
from fedexp.simulation.experiment import Experiment
from fedexp.simulation.round import Row
from fedexp.simulation.rounds import reason_to_stop, rounds, staffed
from fedexp.simulation.world import World
from fedexp.training.workers import TRAINING, Crew

GRACE_S = 5.0  # for work that cannot be tried in part; after it the trial is given up
PATIENCE_S = 2.0  # for rounds after the second, which make the estimate better
MOST = 50
TABLES = ("metrics.csv", "clients.csv", "digests.csv", "clusters.csv")  # they grow with the rounds
STATES = (checkpoint.NAME, checkpoint.PREVIOUS)


@dataclass(frozen=True)
class Tried:
    """One round: its work, its megabytes, its seconds (None if not measured alone), and parts of these."""

    work: float
    row: Row
    seconds: float | None
    evaluation_s: float
    training_s: float


@dataclass
class Findings:
    """The measurements of the tried rounds."""

    tried: list[Tried] = field(default_factory=list)
    first_s: float = 0.0
    staff_s: float = 0.0  # until all workers had started
    closing_s: float = 0.0
    save_s: float = 0.0
    workers: int = 1
    memory_mb: float = 0.0
    gpu_mb: float | None = None
    state_mb: float = 0.0  # of the file, after the last tried round
    known: set[int] = field(default_factory=set)  # clients that have taken part
    held: list[tuple[int, float]] = field(
        default_factory=list
    )  # after each round, the number of those clients and the state's MB
    table_mb: float = 0.0  # of a round's lines
    other_mb: float = 0.0
    reason: str | None = None  # why the stop rule ended the run during the trial
    parts: list[str] = field(default_factory=list)  # what was tried in part, or given up
    gave_up: str | None = None  # why no more was tried


def probe(exp: Experiment, world: World, config: dict[str, Any], voice: Telling, budget_s: float) -> Findings:
    """Tries two rounds, and more if they are short; only parts of them if time runs out. Leaves nothing behind."""
    evaluation = replace(exp.evaluation, every=1)
    exp = replace(exp, evaluation=evaluation, checkpoint_s=float("inf"), keep_states=0, tracker=Tracker())
    ration = Ration(budget_s)
    world = replace(world, crew=Rationed(Crew(), ration))
    voice.stage = lambda: ration.stage
    with TemporaryDirectory(prefix="fedexp-plan-") as name:
        folder, found = Path(name), Findings()
        with Logbook(folder, exp, world, config, world.beginning(), Silent()) as logbook:
            try:
                with given_up_after(budget_s + GRACE_S):
                    _try_all(exp, world, logbook, found, voice)
            except GivenUp:
                found.gave_up = f"round {logbook.state.round + 1} was not over after {budget_s + GRACE_S:.0f} s"
            voice.stage = str
            if found.tried:
                voice.begin("closing the trial")
                _close(config, logbook, found)
        if found.tried:
            _weigh(folder, found)
    found.parts = ration.parts
    if found.parts and exp.stop.needs_validation:
        found.reason = None  # the rule looked at models that were not trained whole
    return found


def _try_all(exp: Experiment, world: World, logbook: Logbook, found: Findings, voice: Telling) -> None:
    try:
        _try(replace(exp, rounds=min(2, exp.rounds)), world, logbook, found, voice)
        more = _affordable(found, exp.rounds - 2)
        if more and found.reason is None:
            _try(replace(exp, rounds=2 + more), world, logbook, found, voice)
    except EnoughError:
        return


def _affordable(found: Findings, left: int) -> int:
    """How many more rounds are worth trying; the first of them is not measured alone, so it takes at least two."""
    seconds = found.tried[-1].seconds
    more = 0 if not seconds else min(left, MOST, int(PATIENCE_S / seconds))
    return more if more > 1 else 0


def _try(exp: Experiment, world: World, logbook: Logbook, found: Findings, voice: Telling) -> None:
    state, before = logbook.state, None
    ration, first, last = _ration(world), state.round + 1, exp.rounds
    voice.begin(f"round {first} of the trial" if first == 1 else f"{last + 1 - first} more rounds, as they are short")
    with _staffed(exp, world, state, found) as crew:
        zero = time.perf_counter() - state.host_s
        for after, row, sent in rounds(exp, crew, state):
            window = (zero + (before or state.host_s), zero + row["host_s"])
            longer = ration.saved(*window), ration.saved(*window, TRAINING.stage)
            _note(crew, row, sent, before, longer, found)
            before = row["host_s"]
            logbook.record(after, row, sent)
            _measure_memory(crew, found)
            found.known.update(sent.owner.tolist())
            found.held.append((len(found.known), megabytes((after.memory, [each.flat for each in after.models]))))
            if first == 1 and after.round < last:
                voice.begin(f"round {after.round + 1} of the trial")
    found.reason = reason_to_stop(logbook.state)


@contextmanager
def _staffed(exp: Experiment, world: World, state: State, found: Findings) -> Iterator[World]:
    begun = time.perf_counter()
    with staffed(exp, world, state) as crew:
        found.staff_s, found.workers = time.perf_counter() - begun, crew.crew.size
        yield crew


def _ration(world: World) -> Ration:
    assert isinstance(world.crew, Rationed)
    return world.crew.ration


def _note(
    world: World, row: Row, sent: Uploads, before: float | None, longer: tuple[float, float], found: Findings
) -> None:
    """Notes a round; `longer` are the seconds that it, and its training, would have taken beyond the measured ones."""
    if not found.tried:
        found.first_s = row["host_s"] + longer[0]
    done = work(context.at(world, row["round"]), sent.examples, trains_together(world))
    seconds = None if before is None else row["host_s"] - before + longer[0]
    training_s = row["train_s"] + longer[1]
    found.tried.append(Tried(done, row, seconds, row.get("evaluate_s", 0.0) / found.workers, training_s))


def megabytes(node: Any) -> float:
    """The size of all tensors in a nested value."""
    if isinstance(node, torch.Tensor):
        return node.numel() * node.element_size() / 1e6
    if isinstance(node, dict):
        return sum(map(megabytes, node.values()))
    return sum(map(megabytes, node)) if isinstance(node, tuple | list) else 0.0


def _measure_memory(world: World, found: Findings) -> None:
    """Called after each round; the workers still run then, except after the last."""
    found.memory_mb = max(found.memory_mb, peak_mb() + workers_mb(os.getpid()))
    found.gpu_mb = gpu_mb(world.first.flat.device)


def _close(config: dict[str, Any], logbook: Logbook, found: Findings) -> None:
    ration, opened = _ration(logbook.world), time.perf_counter()
    begun = time.perf_counter()
    checkpoint.save(logbook.folder, logbook.state, config, {})
    found.save_s = time.perf_counter() - begun
    begun = time.perf_counter()
    logbook.conclude()
    found.closing_s = time.perf_counter() - begun + ration.saved(opened, time.perf_counter())
    found.memory_mb = max(found.memory_mb, peak_mb())


def _weigh(folder: Path, found: Findings) -> None:
    sizes = {path.name: path.stat().st_size / 1e6 for path in folder.rglob("*") if path.is_file()}
    found.state_mb = sizes[checkpoint.NAME]
    found.table_mb = sum(sizes.get(name, 0.0) for name in TABLES) / len(found.tried)
    found.other_mb = sum(size for name, size in sizes.items() if name not in (*TABLES, *STATES))
