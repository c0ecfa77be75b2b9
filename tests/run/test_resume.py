"""Kill -9 at any moment, and `fedexp resume` ends with the same bytes and the same model."""

import os
import random as chance  # noqa: TID251 - when the test kills is no draw of a run
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from groups import GROUPED, SIMILAR
from kept import kept_bytes
from processes import Command
from run_folders import change_config

from fedexp.commands.launch import resume
from fedexp.core.errors import ConfigError
from fedexp.run.state import checkpoint

WORDS = (
    "dataset=synthetic",
    "dataset.train_size=600",
    "dataset.test_size=100",
    "model=complex_cnn",
    "dataset.shape=[1,8,8]",
    "model.buffers=local",
    "server_optimizer=momentum",
    "server_optimizer.lr=0.2",
    "aggregator=centered_clipping",
    "pre_aggregation=bucketing",
    "fleet=simulated",
    "stop=patience",
    "stop.rounds=100",
    "scenario.clients=12",
    "scenario.participants=4",
    "rounds=8",
    "engine=loop",
    "engine.workers=1",
    "checkpoint_s=0",
    "pictures=false",
)


def model(run: Path) -> torch.Tensor:
    return torch.load(run / "state.pt", weights_only=True)["models"][0][0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    Command(folder, "run", *WORDS, "hydra.run.dir=run").finish()
    return folder / "run"


def wait_for_rounds(run: Path, rounds: int, over: Callable[[], object]) -> None:
    """Returns when the run has written so many rounds, or is over."""
    deadline = time.monotonic() + 60
    while not over() and time.monotonic() < deadline:
        table = run / "metrics.csv"
        if table.exists() and table.read_bytes().count(b"\n") > rounds:
            return
        time.sleep(0.002)


def test_killed_at_random_points(whole: Path, tmp_path: Path):
    """The kills fall anywhere: in training, in an append, in the write of a checkpoint (every round writes one)."""
    run, draw = tmp_path / "run", chance.Random(7)
    command = Command(tmp_path, "run", *WORDS, "hydra.run.dir=run")
    for kill in (1, 3, 5):
        wait_for_rounds(run, kill, command.over)
        time.sleep(draw.random() * 0.05)
        command.kill()
        command = Command(tmp_path, "resume", "run")
    command.finish()
    assert kept_bytes(run) == kept_bytes(whole)
    for name in ("clients.csv", "digests.csv"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()
    assert torch.equal(model(run), model(whole))


def test_killed_before_the_first_state_starts_over(whole: Path, tmp_path: Path):
    run = kill_after(2, tmp_path, *WORDS, "checkpoint_s=1000")
    assert not (run / "state.pt").exists()
    Command(tmp_path, "resume", "run").finish()
    assert kept_bytes(run) == kept_bytes(whole)


MADE = ("dataset=synthetic", "dataset.train_size=2000", "scenario.clients=20", "scenario.participants=4")
QUICK = ("rounds=8", "engine=loop", "engine.workers=1", "pictures=false")


def kill_after(rounds: int, folder: Path, *words: str) -> Path:
    """A run that was killed after so many of its rounds; started again where it was over before the kill came."""
    for _ in range(20):
        command = Command(folder, "run", *words, "hydra.run.dir=run")
        wait_for_rounds(folder / "run", rounds, command.over)
        if command.kill() == -signal.SIGKILL:
            return folder / "run"
        shutil.rmtree(folder / "run")
    raise AssertionError("the run was always over before it could be killed")


def assert_resumes(folder: Path, *words: str) -> None:
    """Killed after three rounds and resumed, a run ends as the one that was left alone."""
    Command(folder, "run", *words, "hydra.run.dir=whole").finish()
    run, whole = kill_after(3, folder, *words, "checkpoint_s=0"), folder / "whole"
    Command(folder, "resume", "run").finish()
    assert kept_bytes(run) == kept_bytes(whole)
    for name in ("clients.csv", "digests.csv"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()
    assert torch.equal(model(run), model(whole))


@pytest.mark.parametrize("privacy", ["dp_sgd", "client_central"])
def test_a_killed_private_run_goes_on_with_its_ledger_and_its_noise(tmp_path: Path, privacy: str):
    spent = ("privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3", "local.batch_size=10")
    adapts = ("aggregator.weighting=uniform", "privacy.quantile=0.5") if privacy == "client_central" else ()
    assert_resumes(tmp_path, *MADE, *QUICK, f"privacy={privacy}", *spent, *adapts)


def test_a_killed_run_goes_on_with_its_rates_and_the_momentum_of_its_clients(tmp_path: Path):
    lasting = ("local.momentum=0.9", "local.worker_momentum=true", "local.epochs=[1,3]", "schedule=cosine")
    assert_resumes(tmp_path, *MADE, *QUICK, *lasting, "server_optimizer=adagrad", "server_schedule=step")


def test_a_killed_run_prepares_again_what_the_server_had_learnt(tmp_path: Path):
    public = ("scenario.public_fraction=0.2", "features=autoencoder", "features.epochs=2", "pretraining=public")
    assert_resumes(tmp_path, *MADE, *QUICK, *public)


CLUSTERED = (
    *GROUPED,
    *SIMILAR,
    *QUICK,
    "clustering.arrivals=[2:3,4:2]",
    "clustering.admitted=1",
    "clustering.take=0.7",
    "evaluation.personal_fraction=0.2",
    "rounds=9",
)


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clustered")
    Command(folder, "run", *CLUSTERED, "hydra.run.dir=run").finish()
    return folder / "run"


@pytest.mark.parametrize("kept_every", [0, 1000])
def test_a_killed_run_with_a_queue_loses_nobody(clustered: Path, tmp_path: Path, kept_every: int):
    """With a state of each round, and without any: what happened before round 1 is then written anew."""
    run = kill_after(4, tmp_path, *CLUSTERED, f"checkpoint_s={kept_every}")
    states = [path for path in (run / checkpoint.NAME, run / checkpoint.PREVIOUS) if path.exists()]
    assert bool(states) == (kept_every == 0)
    if states:  # between two renames there is only the state before
        saved = torch.load(states[0], weights_only=True)
        assert len(saved["memory"]["clustering"]["waiting"]) > 0
    Command(tmp_path, "resume", "run").finish()
    assert kept_bytes(run) == kept_bytes(clustered)
    for name in ("clients.csv", "clusters.csv", "digests.csv"):
        assert (run / name).read_bytes() == (clustered / name).read_bytes()
    states = [torch.load(folder / "state.pt", weights_only=True) for folder in (run, clustered)]
    one, other = ([flat for flat, _ in state["models"]] for state in states)
    assert len(one) == 4
    assert all(torch.equal(flat, same) for flat, same in zip(one, other, strict=True))


def test_kill_with_workers_leaves_no_process_and_resumes(whole: Path, tmp_path: Path):
    """Typed at a shell, imports and all."""
    run, typed = tmp_path / "run", (sys.executable, "-m", "fedexp.cli", "run", *WORDS)
    words = (*typed, "hydra.run.dir=run", "engine.workers=2")
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_for_rounds(run, 3, lambda: process.poll() is not None)
    os.kill(process.pid, signal.SIGKILL)  # the first process alone: its worker must end by itself
    process.communicate(timeout=30)  # ends only when the worker has closed the pipe that it inherited
    Command(tmp_path, "resume", "run").finish()
    assert kept_bytes(run) == kept_bytes(whole)
    assert (run / "digests.csv").read_bytes() == (whole / "digests.csv").read_bytes()
    assert torch.equal(model(run), model(whole))


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A finished run, as if it had been killed after its tables grew by one more round than its state."""
    run = tmp_path / "run"
    run.mkdir()
    tables = ("metrics.csv", "clients.csv", "digests.csv", "federation.csv")
    for name in ("config.json", *tables, "state.previous.pt", "state.pt"):
        (run / name).write_bytes((whole / name).read_bytes())
    return run


def test_a_damaged_state_falls_back_and_says_so(whole: Path, copy: Path, capsys: pytest.CaptureFixture[str]):
    (copy / "state.pt").write_bytes((copy / "state.pt").read_bytes()[:-2000])
    with (copy / "metrics.csv").open("ab") as table:
        table.write(b"9,0.5")  # a line that was cut off
    resume(copy)
    assert "state.pt is damaged; falling back to the state after round 7" in capsys.readouterr().out
    assert kept_bytes(copy) == kept_bytes(whole)
    assert torch.equal(model(copy), model(whole))


def test_another_config_is_refused_with_the_differing_keys(copy: Path):
    change_config(copy, lambda config: config["local"].update(lr=0.3))
    with pytest.raises(BaseException, match=r"local\.lr \(then 0\.1, now 0\.3\)") as told:
        resume(copy)
    assert isinstance(told.value.__cause__, ConfigError)


def test_the_engine_may_change(whole: Path, copy: Path):
    change_config(copy, lambda config: config["engine"].update(workers=2))
    (copy / "state.pt").unlink()
    resume(copy)
    assert kept_bytes(copy) == kept_bytes(whole)
    assert (copy / checkpoint.NAME).exists()


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda run: change_config(run, lambda config: config.update(rounds=20)), "config.json now says rounds=20"),
        (lambda run: cut_rounds(run, 3), r"a line of metrics\.csv for every round of summary\.json, .* got 3"),
    ],
)
def test_a_finished_run_that_was_edited_is_not_called_finished(
    whole: Path, tmp_path: Path, edit: Callable[[Path], None], complaint: str, capsys: pytest.CaptureFixture[str]
):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    edit(run)
    with pytest.raises(BaseException, match=complaint):
        resume(run)
    assert "nothing is left to run" not in capsys.readouterr().out


def cut_rounds(run: Path, lines: int) -> None:
    table = run / "metrics.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[: lines + 1]))
