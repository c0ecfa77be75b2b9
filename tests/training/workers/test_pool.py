"""A worker that dies ends the run with its error; nothing hangs, nothing stays behind, nothing is told twice."""

import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from worlds import world_of

from fedexp.core.device_arrays import as_index
from fedexp.core.errors import ConfigError, RunError
from fedexp.process import logs
from fedexp.run.run import run
from fedexp.simulation import local_task
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.world import World
from fedexp.training.workers import forked as fork
from fedexp.training.workers import heartbeat, pool
from fedexp.training.workers.forked import ForkedWorkers

Tiny = Callable[..., dict[str, Any]]


def live(world: World) -> None:
    with with_workers(world.exp, world, world.initial_state()) as staffed_world:
        for _ in run_rounds(world.exp, staffed_world, world.initial_state()):
            pass


def only_in_a_worker(act: Callable[[], None]) -> Callable[..., Any]:
    here = os.getpid()

    def trained(world: World, task: Any, rows: Any) -> Any:
        if os.getpid() != here:
            act()
        else:
            time.sleep(0.05)  # leaves the other process a job to fail in
        return world.trainer.run(task, rows)

    return trained


def test_a_worker_that_is_killed(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local_task, "train_rows", only_in_a_worker(lambda: os.kill(os.getpid(), signal.SIGKILL)))
    with pytest.raises(RunError, match="worker 1 was killed by signal 9"):
        live(world_of(tiny("engine.workers=2", "rounds=50")))


def test_a_worker_that_fails_tells_its_error(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    def fail() -> None:
        raise ArithmeticError("seven is not eight")

    monkeypatch.setattr(local_task, "train_rows", only_in_a_worker(fail))
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
    with with_workers(world.exp, world, world.initial_state()) as shared:
        assert shared.pool.size == 3
        stream = run_rounds(world.exp, shared, world.initial_state())
        next(stream)
    assert gone(forked)


def test_a_single_job_is_done_by_every_process_itself(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    words = ("scenario.participants=1", "rounds=6", "evaluation.every=6")
    train, calls = local_task.train_rows, []
    monkeypatch.setattr(local_task, "train_rows", lambda *given: calls.append(None) or train(*given))
    models = []
    for workers in (1, 2):
        world = world_of(tiny(*words, f"engine.workers={workers}"))
        with with_workers(world.exp, world, world.initial_state()) as staffed_world:
            rounds = run_rounds(world.exp, staffed_world, world.initial_state())
            models.append([state.models[0].flat for state, _, _ in rounds])
    assert len(calls) == 6 + 6  # the first process leaves none to the other
    assert all(torch.equal(alone, together) for alone, together in zip(*models, strict=True))


def test_an_error_of_the_first_process_is_told_as_it_is(tiny: Tiny, forked: list[int]):
    world = world_of(tiny("engine.workers=2"))
    with pytest.raises(KeyError, match="mine"), with_workers(world.exp, world, world.initial_state()):
        raise KeyError("mine")
    assert gone(forked)


def test_what_every_process_notices_is_logged_once(tiny: Tiny, tmp_path: Path):
    with logs.restore_logging():
        logs.log_to(tmp_path)
        run(tiny("engine.workers=2", "local.lr=1e38", "rounds=5"), tmp_path)
    lines = (tmp_path / "fedexp.log").read_text().splitlines()
    assert [line.partition("WARNING ")[2] for line in lines if "WARNING" in line] == [
        f"round {number}: 3 of 3 updates are not finite and were dropped" for number in (2, 3, 4, 5)
    ]


def dies(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("after_s", [0, 0.003, 0.01, 0.03, None])
def test_a_worker_that_is_killed_while_the_group_forms(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, after_s: float | None, size: int
):
    """Before the others know of it, on its way, or (None) as soon as it is one of them."""
    work = ForkedWorkers._work

    def doomed(self: ForkedWorkers, rank: int, port: int, follow: Any) -> None:
        last = rank == size - 1
        if last and after_s is not None:
            threading.Timer(after_s, dies).start() if after_s else dies()
        work(self, rank, port, dies if last and after_s is None else follow)

    monkeypatch.setattr(ForkedWorkers, "_work", doomed)
    begun = time.monotonic()
    with pytest.raises(RunError, match=f"worker {size - 1} was killed by signal 9"):
        live(world_of(tiny(f"engine.workers={size}", "rounds=100")))
    assert time.monotonic() - begun < 20


def test_a_worker_that_is_killed_between_two_rounds(tiny: Tiny, forked: list[int]):
    world = world_of(tiny("engine.workers=3", "rounds=50"))

    def play() -> None:
        with with_workers(world.exp, world, world.initial_state()) as shared:
            for number, _ in enumerate(run_rounds(world.exp, shared, world.initial_state())):
                if number == 1:
                    os.kill(forked[1], signal.SIGKILL)

    with pytest.raises(RunError, match="worker 2 was killed by signal 9"):
        play()


def test_an_error_longer_than_a_pipe_holds_is_cut(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    def fail() -> None:
        raise ConfigError("x" * 1_000_000)

    monkeypatch.setattr(local_task, "train_rows", only_in_a_worker(fail))
    with pytest.raises(RunError, match=r"worker 1 failed: x{1000}"):
        live(world_of(tiny("engine.workers=2")))


def test_a_worker_that_does_not_answer_is_named_and_may_come_back(
    tiny: Tiny, forked: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(pool, "LOOK_S", 0.6)
    monkeypatch.setattr(fork, "LOOK_S", 0.6)
    monkeypatch.setattr(heartbeat, "PATIENCE", 2)
    world = world_of(tiny("engine.workers=2", "rounds=4"))
    with with_workers(world.exp, world, world.initial_state()) as shared:
        played = run_rounds(world.exp, shared, world.initial_state())
        next(played)
        os.kill(forked[0], signal.SIGSTOP)
        threading.Timer(2.5, os.kill, (forked[0], signal.SIGCONT)).start()
        assert len(list(played)) == 3
    told = [record.message for record in caplog.records if "has not answered" in record.message]
    assert len(told) == 1
    assert told[0].startswith(f"worker 1 (process {forked[0]}) has not answered for ")


@pytest.mark.parametrize("size", [2, 4])
def test_too_few_open_files_are_refused_before_a_worker_is_forked(
    size: int, tiny: Tiny, forked: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (12, 12))
    with pytest.raises(ConfigError, match=f"{size} workers need [0-9]+ open files, but the system allows 12; raise"):
        live(world_of(tiny(f"engine.workers={size}")))
    assert not forked


def test_as_many_open_files_as_are_asked_for_are_enough(tiny: Tiny, forked: list[int]):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    world = world_of(tiny("engine.workers=3", "rounds=2"))
    live(world)  # what is imported in a first run takes files, too
    enough = len([*Path("/dev/fd").iterdir()]) + fork.FILES + 3 * fork.FILES_EACH
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, before[1]))
    try:
        live(world)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert gone(forked)


@pytest.mark.parametrize(
    ("rows", "is_slice"), [([2, 3, 4], True), ([3], True), ([], True), ([2, 4], False), ([3, 2], False)]
)
def test_neighbouring_positions_are_a_slice(rows: list[int], is_slice: bool):
    index, values = as_index(np.array(rows, dtype=np.int64), torch.device("cpu")), torch.arange(6)
    assert isinstance(index, slice) == is_slice
    assert values[index].tolist() == rows
