"""A worker that dies ends the run with its error; nothing hangs, nothing stays behind, nothing is told twice."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from worlds import world_of

from fedexp.core import logs
from fedexp.core.errors import RunError
from fedexp.run.run import run
from fedexp.simulation.rounds import rounds, staffed
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]


def live(world: World) -> None:
    with staffed(world.exp, world, world.beginning()) as staffed_world:
        for _ in rounds(world.exp, staffed_world, world.beginning()):
            pass


def only_in_a_worker(act: Callable[[], None]) -> Callable[..., Any]:
    here = os.getpid()

    def trained(self: World, task: Any, rows: Any) -> Any:
        if os.getpid() != here:
            act()
        else:
            time.sleep(0.05)  # leaves the other process a job to fail in
        return self.trainer.run(task, rows)

    return trained


def test_a_worker_that_is_killed(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(World, "train_rows", only_in_a_worker(lambda: os.kill(os.getpid(), signal.SIGKILL)))
    with pytest.raises(RunError, match="worker 1 was killed by signal 9"):
        live(world_of(tiny("engine.workers=2", "rounds=50")))


def test_a_worker_that_fails_tells_its_error(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    def fail() -> None:
        raise ArithmeticError("seven is not eight")

    monkeypatch.setattr(World, "train_rows", only_in_a_worker(fail))
    with pytest.raises(RunError, match="seven is not eight"):
        live(world_of(tiny("engine.workers=2", "rounds=50")))


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were forked in this test."""
    pids, fork = [], os.fork

    def noted() -> int:
        pid = fork()
        if pid:
            pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", noted)
    return pids


def gone(pids: list[int]) -> bool:
    return bool(pids) and not any(os.path.exists(f"/proc/{pid}") for pid in pids)  # noqa: PTH110


def test_workers_end_with_the_first_process(tiny: Tiny, forked: list[int]):
    world = world_of(tiny("engine.workers=3", "rounds=3"))
    with staffed(world.exp, world, world.beginning()) as shared:
        assert shared.crew.size == 3
        stream = rounds(world.exp, shared, world.beginning())
        next(stream)
    assert gone(forked)


def test_an_error_of_the_first_process_is_told_as_it_is(tiny: Tiny, forked: list[int]):
    world = world_of(tiny("engine.workers=2"))
    with pytest.raises(KeyError, match="mine"), staffed(world.exp, world, world.beginning()):
        raise KeyError("mine")
    assert gone(forked)


def test_what_every_process_notices_is_logged_once(tiny: Tiny, tmp_path: Path):
    with logs.kept():
        logs.log_to(tmp_path)
        run(tiny("engine.workers=2", "local.lr=1e38", "rounds=5"), tmp_path)
    lines = (tmp_path / "fedexp.log").read_text().splitlines()
    assert [line.partition("WARNING ")[2] for line in lines if "WARNING" in line] == [
        f"round {number}: 3 of 3 updates are not finite and were dropped" for number in (2, 3, 4, 5)
    ]
