"""The command line as a user meets it: in-process for the messages, as a subprocess for the whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fedexp
from fedexp.cli import main

FAST = (
    "dataset=synthetic",
    "dataset.train_size=100",
    "dataset.test_size=50",
    "rounds=1",
    "engine.workers=1",
    "engine=loop",
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shell(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fedexp.cli", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )


ERRORS = {
    "run selektor=random": "unknown key or group selektor; did you mean selector?",
    "run selector=rnd": "unknown option selector=rnd; did you mean random?",
    "run selector.cout=3": "unknown key selector.cout; did you mean selector.count or selector.fraction?",
    "run local.momentun=0.3": "unknown key local.momentun; did you mean local.momentum?",
    "run rounds=ten": "rounds must be an integer >= 1, got 'ten'",
    "run rounds=0": "rounds must be an integer >= 1, got 0",
    "run local.lr=-1": "local.lr must be a number > 0, got -1",
    "run +foo=1": "unknown key foo; known: ",
    "run +selector.foo=1": "unknown key selector.foo; ",
    "run engine=stackd": "unknown option engine=stackd; did you mean stacked?",
    "run aggregator.weighting=samples": "aggregator.weighting must be one of num_samples, uniform, got 'samples'",
    "run selector.count=null": "selector.count and fraction: one must be given and the other null",
    "run local.steps=3": "local.epochs and steps exclude each other, got epochs=1 and steps=3",
    "run stop=simulated_time": "stop=simulated_time needs a simulated clock, but the fleet has none",
    "run model=har_cnn": "model=har_cnn needs signals",
    "run federation=subject": "federation=subject needs a dataset that knows",
    "run dataset=npz": "dataset.path must be given; set dataset.path=...",
    "run model=mlp,har_cnn": "model=mlp,har_cnn gives several values; add -m to run each of them",
    "run -m seed=0,1 local.lr=0.1,-2": "point 1 (seed=0 local.lr=-2): local.lr must be a number > 0, got -2",
    "run dataset=mnist data_dir=nowhere": "no MNIST/raw/train-images-idx3-ubyte.gz (9,912,422 bytes, MD5 f68b3c2d",
    "run rounds": "cannot read 'rounds'; write key=value or group=option",
    "run --cfg jb": "--cfg/-c: must be one of job, hydra, all, got jb",
    "rnu": "unknown command rnu; did you mean run?",
    "": "a command must be given: run, resume, list, data",
    "resume nowhere": "there is no folder nowhere",
    "list selektor": "unknown group selektor; did you mean selector or stop?",
    "data check mnits": "unknown dataset mnits; did you mean mnist",
}


@pytest.mark.parametrize("words", ERRORS)
def test_an_error_is_one_readable_line_and_leaves_nothing(
    words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"fedexp: {ERRORS[words]}")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_traceback_is_there_for_who_asks():
    told = shell("run", "rounds=0", HYDRA_FULL_ERROR="1")
    assert told.returncode == 2
    assert "Traceback" in told.stderr
    assert told.stderr.splitlines()[-1] == "fedexp: rounds must be an integer >= 1, got 0"


@pytest.mark.parametrize("words", [("--help",), ("list",), ("list", "selector"), ("run", "--help"), ("--version",)])
def test_help_needs_no_torch(words: tuple[str, ...]):
    code = f"import sys; from fedexp.cli import main; code = main({list(words)!r}); print('torch' in sys.modules, code)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert told.stdout.splitlines()[-1] == "False 0"


def test_help_names_every_group_and_option(capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--help"]) == 0
    text = capsys.readouterr().out
    for word in ("selector", "random*", "fleet", "simulated", "keras_mnist", "rounds=30", "-m, --multirun", "--cfg"):
        assert word in text
    assert main(["list", "stop"]) == 0
    assert "patience" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert fedexp.__version__ in capsys.readouterr().out


def test_cfg_shows_the_job_and_makes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["run", "--cfg", "job", "local.lr=0.25"]) == 0
    assert "lr: 0.25" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_run_from_anywhere(tmp_path: Path):
    told = shell("run", *FAST)
    assert told.returncode == 0, told.stderr
    assert told.stderr == ""
    latest = tmp_path / "outputs" / "latest"
    assert latest.is_symlink()
    names = {path.name for path in latest.iterdir()}
    assert names >= {".hydra", "fedexp.log", "state.pt", "curves.png", "federation.csv", "federation.png"}
    assert names >= {"metrics.csv", "clients.csv", "summary.json"}
    assert f"folder          {latest.resolve().relative_to(tmp_path)}" in told.stdout
    assert "final accuracy" in told.stdout
    assert "round 1/1" in (latest / "fedexp.log").read_text()


def test_two_runs_of_one_second_do_not_share_a_folder(tmp_path: Path):
    running = [
        subprocess.Popen([sys.executable, "-m", "fedexp.cli", "run", *FAST], stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    assert len(list((tmp_path / "outputs").glob("*/*/metrics.csv"))) - len(["latest"]) in (2, 3)
    assert len({path.resolve() for path in (tmp_path / "outputs").glob("*/*/summary.json")}) == 3


def test_a_sweep_numbers_its_points(tmp_path: Path):
    assert main(["run", "-m", *FAST, "seed=0,1"]) == 0
    points = sorted((tmp_path / "outputs" / "multirun").glob("*/*/*/summary.json"))
    assert [path.parent.name for path in points] == ["0", "1"]
    splits = {json.loads(path.read_text())["split_sha256"] for path in points}
    assert len(splits) == 2


def test_a_folder_that_holds_a_run_is_not_written_again(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["run", *FAST, "hydra.run.dir=mine"]) == 0
    before = (tmp_path / "mine" / "metrics.csv").read_bytes()
    capsys.readouterr()
    assert main(["run", *FAST, "hydra.run.dir=mine"]) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert (tmp_path / "mine" / "metrics.csv").read_bytes() == before


def test_a_run_that_fails_says_why_and_exits_with_one(capsys: pytest.CaptureFixture[str]):
    words = ("server_optimizer=momentum", "server_optimizer.lr=1e39")
    assert main(["run", *FAST, *words]) == 1
    assert capsys.readouterr().err.startswith("fedexp: the global model is not finite after round 1; ")


def test_under_torchrun_one_process_owns_the_folder(tmp_path: Path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    done = subprocess.run(
        [*command, "-m", "fedexp.cli", "run", *FAST, "scenario.participants=4", "rounds=2"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    alone = shell("run", *FAST, "scenario.participants=4", "rounds=2", "hydra.run.dir=alone")
    assert alone.returncode == 0
    runs = list((tmp_path / "outputs").glob("2*/*/summary.json"))
    assert len(runs) == 1
    shared, own = (json.loads(path.read_text()) for path in (runs[0], tmp_path / "alone" / "summary.json"))
    assert shared["engine"]["workers"] == 2
    assert shared["loss_auc"] == own["loss_auc"]


def test_completion_prints_a_script(capsys: pytest.CaptureFixture[str]):
    assert main(["completion", "bash"]) == 0
    assert "fedexp" in capsys.readouterr().out
