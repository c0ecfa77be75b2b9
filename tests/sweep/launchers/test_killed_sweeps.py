"""A sweep whose launcher and workers are killed at random, and resumed until done, with every launcher."""

import os
import random as chance  # noqa: TID251 - when the test kills is no draw of a run
import signal
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from composing import config
from kept import kept_bytes
from processes import Command

from fedexp.run import run as execution

MADE = (
    *("dataset=synthetic", "dataset.train_size=300", "dataset.test_size=60", "scenario.clients=6"),
    *("scenario.participants=3", "rounds=12", "engine=loop", "engine.workers=1", "pictures=false", "checkpoint_s=0"),
)
LEARNING_RATES = ("0.05", "0.1", "0.2")
FULL = os.environ.get("FEDEXP_FULL") == "1"  # the whole 24 points with every launcher: two minutes
SEEDS, KILLS = (8, 3) if FULL else (1, 1)
PACKAGES = {"joblib": "joblib", "submitit_local": "submitit", "ray": "ray"}


def points() -> list[tuple[str, int]]:
    return [(rate, seed) for rate in LEARNING_RATES for seed in range(SEEDS)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """The folder of a point that ran on its own."""
    folder = tmp_path_factory.mktemp("alone")

    @cache
    def run(rate: str, seed: int) -> Path:
        execution.run(config(*MADE, f"local.lr={rate}", f"seed={seed}"), folder / f"{rate}-{seed}")
        return folder / f"{rate}-{seed}"

    return run


def living_in(folder: Path) -> list[int]:
    """The processes that were started from this folder, the oldest first."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cwd").readlink() == folder and "fedexp" not in (place / "comm").read_text():
                found.append(int(place.name))
        except OSError:
            continue
    return sorted(found)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for process in living_in(tmp_path):
        os.kill(process, signal.SIGKILL)


def wait_for_points(folder: Path, points: int, process: Command) -> None:
    """Returns when so many points have written rounds, or the process is over."""
    deadline = time.monotonic() + 120
    while not process.over() and len(list((folder / "many").glob("*/metrics.csv"))) < points:
        assert time.monotonic() < deadline, process.said.read_text()
        time.sleep(0.02)


def kill_some(folder: Path, launcher: int, draw: chance.Random) -> None:
    """Kills a process that works for the launcher, and a little later the launcher."""
    workers = [process for process in living_in(folder) if process != launcher]
    if workers:
        os.kill(draw.choice(workers), signal.SIGKILL)
        time.sleep(draw.random())
    os.kill(launcher, signal.SIGKILL)


@pytest.mark.parametrize("launcher", PACKAGES)
def test_killed_and_resumed_until_done(alone: Callable[[str, int], Path], here: Path, launcher: str):
    pytest.importorskip(PACKAGES[launcher])
    draw = chance.Random(3)
    grid = (f"local.lr={','.join(LEARNING_RATES)}", f"seed={','.join(map(str, range(SEEDS)))}")
    process = Command(here, "run", "-m", *MADE, *grid, f"hydra/launcher={launcher}", "hydra.sweep.dir=many")
    for kill in range(KILLS):
        wait_for_points(here, 1 + 2 * kill, process)
        time.sleep(0.3 * draw.random())
        if not process.over():
            kill_some(here, process.pid, draw)
        process.wait()
        process = Command(here, "resume", "many")
    for _ in range(8):  # a point whose process outlived its launcher is waited for
        if process.wait(200) == 0:
            break
        process = Command(here, "resume", "many")
    assert process.wait() == 0, process.said.read_text()
    for number, (rate, seed) in enumerate(points()):
        run, twin = here / "many" / str(number), alone(rate, seed)
        assert kept_bytes(run) == kept_bytes(twin)
        assert (run / "clients.csv").read_bytes() == (twin / "clients.csv").read_bytes()
        # none of a run that was killed when its last file was there and its closing table was not printed yet
        assert (run / "fedexp.log").read_text().count("final accuracy") <= 1, "run to its end once"


@pytest.mark.parametrize("command", ["sweep", "search"])
def test_joblibs_processes_end_with_the_one_that_is_killed(here: Path, command: str):
    pytest.importorskip("optuna" if command == "search" else "joblib")
    long = (*MADE, "rounds=1000000")
    if command == "search":
        words = ("search", *long, "local.lr=tag(log,interval(0.01,0.1))", "--jobs", "2", "--out", "many")
    else:
        words = ("run", "-m", *long, "seed=0,1", "hydra/launcher=joblib", "hydra.launcher.jobs=2")
    process = Command(here, *words, *(() if command == "search" else ("hydra.sweep.dir=many",)))
    deadline = time.monotonic() + 120
    while not process.over() and len(list((here / "many").rglob("metrics.csv"))) < 2:
        assert time.monotonic() < deadline, process.said.read_text()
        time.sleep(0.02)
    assert len(living_in(here)) > 2
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 3
    while left := living_in(here):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
