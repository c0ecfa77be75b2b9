"""Tried rounds made into whole runs, with numbers for a pencil."""

from typing import Any

import pytest

from fedexp.plan.forecast import RunOutline, count_saves, disk_mb, growth_mb, memory_mb, seconds
from fedexp.plan.probe import ProbeResult, TriedRound


def tried(work: float, seconds: float | None, training: float, evaluation: float = 0.5) -> TriedRound:
    return TriedRound(work, {}, seconds, evaluation, training)


def course(rounds: int, work: tuple[float, ...] | None = None, **more: Any) -> RunOutline:
    known: dict[str, Any] = {"clients": 0, "evaluations": rounds, "checkpoint_s": 1e9, "keep_states": 0, **more}
    return RunOutline(rounds, work, **known)


FOUND = ProbeResult(
    tried_rounds=[tried(100, None, 9.0), tried(100, 3.0, 2.0)], first_s=10.0, worker_start_s=0.25, closing_s=1.5
)


def test_a_steady_run():
    spent = seconds(FOUND, course(5), start_s=2.0)
    assert spent.start == 2.25
    assert spent.round == 3.0  # 1 s that stays, 2 s of training
    assert spent.rounds == 10 + 4 * 3 + 0.5  # the last evaluation is in no other round
    assert spent.total == 2.25 + 22.5 + 1.5


def test_points_start_the_program_once():
    spent = seconds(FOUND, course(5), start_s=2.0, process_s=1.75)
    assert spent.total == 2.25 + 22.5 + 1.5
    assert spent.of_points(1) == spent.total
    assert spent.of_points(4) == 1.75 + 4 * (0.5 + 22.5 + 1.5)


def test_training_grows_with_the_work():
    assert seconds(FOUND, course(3, (100, 200, 50)), 0).rounds == 10 + 2 * 1 + (4 + 1) + 0.5


def test_rounds_that_are_not_evaluated_are_shorter():
    assert seconds(FOUND, course(5, evaluations=3), 0).rounds == 10 + 12 + 0.5 - 2 * 0.5


def test_one_round():
    only = ProbeResult(tried_rounds=[tried(100, None, 9.0)], first_s=10.0)
    assert seconds(only, course(1), 0).rounds == 10.5


@pytest.mark.parametrize(
    ("clock", "keep", "count"),
    [(1e9, 0, 0), (0, 0, 20), (5, 0, 4), (1e9, 5, 8), (5, 5, 8)],
)
def test_saved_states(clock: float, keep: int, count: int):
    assert count_saves(20.0, course(20, checkpoint_s=clock, keep_states=keep)) == count


def test_a_state_that_grows_with_every_new_client():
    found = ProbeResult(state_sizes=[(3, 7.0), (5, 11.0)], memory_mb=500.0, state_mb=12.0, table_mb=0.5, other_mb=2.0)
    assert growth_mb(found, course(9, clients=15)) == 20.0  # 2 MB for each of ten
    assert growth_mb(found, course(9, clients=5)) == 0.0
    assert memory_mb(found, course(9, clients=15)) == (540.0, None)  # the old table and the new one
    found.versions_mb = 3.0  # of the models that clients train on, 10 MB later on
    assert growth_mb(found, course(9, clients=15, versions_mb=10.0)) == 20.0 + 7
    assert growth_mb(found, course(9, clients=15, versions_mb=2.0)) == 20.0
    found.versions_mb, found.gpu_mb = 0.0, 100.0
    assert memory_mb(found, course(9, clients=15)) == (500.0, 140.0)
    assert disk_mb(found, course(8, clients=15), rounds_s=1.0) == 32 + 8 * 0.5 + 2
    assert disk_mb(found, course(8, clients=15, keep_states=4), rounds_s=1.0) == (2 + 2) * 32 + 8 * 0.5 + 2
