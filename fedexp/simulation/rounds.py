"""The rounds of a run in memory, one after another, each evaluated; writes no file."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

import torch.distributed as dist

from fedexp.core.errors import ConfigError, RunError
from fedexp.core.signals import delay_interrupts
from fedexp.core.values import State, Uploads
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.measures import all as measurements
from fedexp.simulation.measures import server_data, validation
from fedexp.simulation.round import Row, run_round
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.workers.forked import ForkedWorkers


@contextmanager
def with_workers(exp: Experiment, world: World, state: State) -> Iterator[World]:
    """The world with its workers: those of torchrun, forks of this process, or none."""
    size = exp.engine.worker_count(exp.usual_participants(world.partition.clients))
    workers = ForkedWorkers(1 if world.pool.size > 1 else size)
    try:
        with delay_interrupts():
            pool = workers.start(lambda pool: run_silently(exp, world.with_pool(pool), state)) or world.pool
        yield world.with_pool(pool)
    except (ConfigError, RunError):
        raise
    except RuntimeError as error:
        if (reason := workers.describe_failure()) is not None:
            raise RunError(f"{reason}; what was saved before stays: continue with fedexp resume") from error
        raise
    finally:
        with delay_interrupts():
            workers.stop()
            if dist.is_initialized():
                dist.destroy_process_group()


def run_silently(exp: Experiment, world: World, state: State) -> None:
    """Runs all rounds without recording them, as worker processes do."""
    for _ in run_rounds(exp, world, state):
        pass


def run_rounds(exp: Experiment, world: World, state: State) -> Iterator[tuple[State, Row, Uploads]]:
    """Yields each evaluated round's state, row of metrics, and uploads whose rows have no entries.

    Where somebody can evaluate beside the next round, that comes first; nothing decided depends on it. Rows `[C, D]`
    are the most that a round holds, so they live no longer than its measures take.

    Raises:
        RunError: the global model is no longer finite, or a part cannot go on.
        ConfigError: a part does not do what its contract says.
    """
    start = time.perf_counter() - state.host_s
    finish: Callable[[], tuple[State, Row, Uploads]] | None = None
    while state.round < exp.rounds and not reason_to_stop(state):
        try:
            following, row, sent = run_round(exp, world, state)
        except (RunError, ConfigError):
            if finish is not None:  # the round before is over and gets its line
                yield finish()
            raise
        if finish is not None:
            yield finish()
        before = state
        following = replace(following, host_s=time.perf_counter() - start)
        state, row = apply_stop_rule(exp, world, before, following, row)
        finish = evaluate_later(exp, world, before, state, row, sent)
        del before, following, sent
        if not world.evaluates_later:
            yield finish()
            finish = None
    if finish is not None:
        yield finish()


def reason_to_stop(state: State) -> str | None:
    """Why the run ended early, if it did."""
    return state.memory.get("stop", {}).get("reason")


def is_evaluated(exp: Experiment, before: State, state: State) -> bool:
    """Whether the round from one state to the next is evaluated, whatever a stop rule says of it."""
    return state.round == exp.rounds or exp.evaluation.is_due(state.round, before.sim_s, state.sim_s)


def apply_stop_rule(exp: Experiment, world: World, before: State, state: State, row: Row) -> tuple[State, Row]:
    """Evaluates on the data that the stop rule looks at or that is asked for, and applies the rule."""
    is_due = is_evaluated(exp, before, state)
    if validates := exp.stop.needs_validation or (exp.evaluation.validation and is_due):
        row = add_scores(exp, world, state, row, "validation")
    elif exp.evaluation.validation:
        row = row | world.scorer.metric_set.blank("validation")
    if exp.stop.needs_test and not is_due:
        return state, row | world.scorer.metric_set.blank("test") | {"host_s": state.host_s}
    if exp.stop.needs_test:
        row = add_scores(exp, world, state, row, "test")
    reason, memory = check_call(exp, "stop", exp.stop.judge, row, state.memory.get("stop", {}))
    if reason and exp.evaluation.validation and not validates:
        row = add_scores(exp, world, state, row, "validation")
    stop_columns = {f"stop.{name}": value for name, value in memory.get("columns", {}).items()}
    state = replace(state, memory={**state.memory, "stop": {**memory, "reason": reason}})
    return state, row | stop_columns | {"host_s": state.host_s}


def add_scores(exp: Experiment, world: World, state: State, row: Row, kind: Literal["validation", "test"]) -> Row:
    """The row with the cells of the models on such data, and its seconds of evaluation with these."""
    if kind == "test":
        measured = server_data.score(exp, world, state, world.test)
    else:
        measured = validation.score(exp, world, state)
    return row | measured.columns(kind) | {"evaluate_s": row.get("evaluate_s", 0.0) + measured.seconds}


def evaluate_later(
    exp: Experiment, world: World, before: State, state: State, row: Row, sent: Uploads
) -> Callable[[], tuple[State, Row, Uploads]]:
    """Starts the evaluation of a round's models if it is due; the result completes the round's row."""
    if not exp.evaluation.test or not (is_evaluated(exp, before, state) or reason_to_stop(state)):
        test_cells = world.scorer.metric_set.blank("test") if exp.evaluation.test else {}
        measure_cells, rowless = measurements.blank(exp, world), sent.without_rows()
        return lambda: (state, row | test_cells | measure_cells, rowless)
    pending = None if exp.stop.needs_test else server_data.score_later(exp, world, state, world.test)
    pending_measures = measurements.begin(exp, world, before, state, sent)
    rowless = sent.without_rows()

    def finish() -> tuple[State, Row, Uploads]:
        scores, measured = pending and pending.result(), [result() for result in pending_measures]
        seconds = (scores.seconds if scores else 0.0) + sum(spent for _, spent in measured) + row.get("evaluate_s", 0.0)
        test_columns = (scores.columns("test") if scores else {}) | {"evaluate_s": seconds}
        return (
            state,
            row | test_columns | {name: cell for columns, _ in measured for name, cell in columns.items()},
            rowless,
        )

    return finish
