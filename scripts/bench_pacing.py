"""What clients that train on while the server steps cost: a step against a synchronous round, and the timetable alone.

    python scripts/bench_pacing.py

A step of FedBuff with 100 clients in flight and 10 uploads, and a synchronous round of 10 participants, take turns of
twelve in one run, each in a process of its own. Where the memory of a process lies makes a tenth, so several pairs of
processes are begun, one after another, and the median of them counts. The timetable is that of 1,000 clients in flight
among 1,000,000, with 10 and with 1,000 uploads a step.
"""

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench import world_of, write_rows

WARM_UP, STEPS, TURNS, PAIRS = 50, 12, 5, 5
DATA = ("dataset=synthetic", "fleet=simulated", "fleet.link=own", f"rounds={WARM_UP + STEPS * TURNS}")
EXAMPLES = ("dataset.train_size=50000", "scenario.clients=500")
MLP = ("dataset.shape=[28,28]", "model=mlp")
NETWORKS = {  # the third has about as many examples a client as MNIST over a hundred clients
    "mlp, 100 examples a client": (*MLP, *EXAMPLES),
    "mlp, 100 examples a client, one worker": (*MLP, *EXAMPLES, "engine.workers=1"),
    "mlp, 500 examples a client": (*MLP, "dataset.train_size=60000", "scenario.clients=120"),
    "simple_cnn, 100 examples a client": ("dataset.shape=[3,32,32]", *EXAMPLES, "model=simple_cnn"),
}
PACINGS = {
    "synchronous": ("scenario.participants=10",),
    "buffered": ("pacing=buffered", "pacing.clients=100", "pacing.buffer=10"),
}


def run_when_asked(words: tuple[str, ...], pipe: Connection) -> None:
    """Runs as many steps as the other end of the pipe asks for, and answers with the seconds of each, until the last.

    The worker of a process that waits first trains for the whole next step, beside the first steps of the other
    process; so the first two of each turn are not counted.
    """
    from fedexp.simulation.rounds import run_rounds, with_workers

    world = world_of([*words, "evaluation.every=100000", "dataset.test_size=100"])
    with with_workers(world.exp, world, world.initial_state()) as world:
        rounds = run_rounds(world.exp, world, world.initial_state())
        for _ in range(TURNS + 1):
            marks = [time.perf_counter() for _ in islice(rounds, pipe.recv())]
            pipe.send([after - before for before, after in pairwise(marks)][1:])


def step_ratio(words: tuple[str, ...]) -> float:
    """Seconds of a step of FedBuff over those of a synchronous round: the median of turns of a few steps each."""
    spawn, pipes = get_context("spawn"), {}
    for name, pacing in PACINGS.items():
        pipes[name], end = spawn.Pipe()
        spawn.Process(target=run_when_asked, args=((*DATA, *words, *pacing), end)).start()
        end.close()  # so that nobody waits for a process that has died
    ratios = []
    try:
        for pipe in pipes.values():  # until as many versions are held as at any later time
            ask(pipe, WARM_UP)
        for _ in range(TURNS):
            median = {name: statistics.median(ask(pipe, STEPS)) for name, pipe in pipes.items()}
            ratios.append(median["buffered"] / median["synchronous"])
    finally:
        for pipe in pipes.values():
            pipe.close()
    return statistics.median(ratios)


def ask(pipe: Connection, steps: int) -> list[float]:
    """The seconds of so many steps of the process at the other end."""
    pipe.send(steps)
    return pipe.recv()


def timetable_ms(buffer: int) -> list[float]:
    """Milliseconds in which a step's timetable is worked out, of each of 30 steps after the first ten."""
    from fedexp.simulation import context

    words = ["dataset=synthetic", "dataset.shape=[8]", "dataset.train_size=1000000", "scenario.clients=1000000"]
    words += ["fleet=simulated", "pacing=buffered", "pacing.clients=1000", f"pacing.buffer={buffer}"]
    world = world_of([*words, "engine.workers=1"])
    exp, state, taken = world.exp, world.initial_state(), []
    for _ in range(40):
        ctx = context.begin_round(exp, world, state)
        plan, _ = exp.selector.choose({}, ctx)
        begun = time.perf_counter()
        _, memory = exp.pacing.due(plan, world.first, state.memory.get("pacing", {}), ctx)
        taken.append(1000 * (time.perf_counter() - begun))
        state = replace(state, round=state.round + 1, memory={"pacing": memory})
    return taken[10:]


def row(what: str, values: list[float], unit: str) -> dict[str, Any]:
    """A line of the table: the median of some values, and their range."""
    numbers = {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}
    return {"what": what, **{name: round(number, 3) for name, number in numbers.items()}, "unit": unit}


def rows() -> Iterator[dict[str, Any]]:
    for network, data in NETWORKS.items():
        yield row(f"step, {network}", [step_ratio(data) for _ in range(PAIRS)], "of a synchronous round")
    for buffer in (10, 1000):
        yield row(f"timetable, {buffer} uploads", timetable_ms(buffer), "ms")


if __name__ == "__main__":
    write_rows(Path("outputs/bench_pacing.csv"), rows())
