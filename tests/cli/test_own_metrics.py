"""A metric of one's own in the working folder, by the command; and a stranger's folder, which runs none."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import processes
import pytest
from command_line import python
from sklearn.metrics import roc_auc_score

import fedexp

OWN = """
import pathlib
pathlib.Path(__file__).with_name("imported").touch()
def f2(probabilities, targets):
    answers = probabilities.argmax(axis=1)
    found, wrong = ((answers == 1) & (targets == 1)).sum(), ((answers == 1) & (targets != 1)).sum()
    missed = ((answers != 1) & (targets == 1)).sum()
    return 5 * found / max(1, 5 * found + 4 * missed + wrong)
def right(probabilities, targets):
    return (probabilities.argmax(axis=1) == targets).mean()
def broken(probabilities, targets):
    return "much"
"""
WORDS = (
    *("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "dataset.classes=2", "rounds=3"),
    *("scenario.clients=6", "scenario.participants=3", "pictures=false", "hydra.run.dir=run"),
    *("evaluation.metrics=[own.scores:right,own.scores:f2,auroc,accuracy]", "evaluation.validation=true"),
)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A working folder with a package."""
    (tmp_path / "here" / "own").mkdir(parents=True)
    (tmp_path / "here" / "own" / "scores.py").write_text(OWN)
    return tmp_path / "here"


def typed(here: Path, *words: str, cache: str = "cache") -> subprocess.CompletedProcess[str]:
    """What the command does in this folder."""
    return processes.typed(here, *words, FEDEXP_CACHE=str(here.parent / cache))


def test_a_new_python_finds_the_function_where_the_folder_is_not_on_its_path(here: Path):
    environment = {**os.environ, "FEDEXP_CACHE": str(here.parent / "cache"), "PYTHONSAFEPATH": "1"}
    environment["PYTHONPATH"] = str(Path(fedexp.__file__).parents[1])
    done = python("-m", "fedexp", "run", *WORDS, cwd=here, env=environment)
    assert done.returncode == 0, done.stderr
    assert "round 3/3  right " in done.stdout


@pytest.mark.parametrize("workers", [1, 2])
def test_a_function_in_the_working_folder_is_a_metric(here: Path, workers: int):
    done = typed(here, "run", *WORDS, f"engine.workers={workers}")
    assert done.returncode == 0, done.stderr
    assert "round 3/3  right " in done.stdout
    table = pd.read_csv(here / "run" / "metrics.csv")
    assert list(table)[1:6] == ["test_loss", "test_right", "test_f2", "test_auroc", "test_accuracy"]
    assert table["test_right"].tolist() == table["test_accuracy"].tolist()
    assert table["validation_right"].tolist() == table["validation_accuracy"].tolist()
    assert table["test_auroc"].between(0, 1).all()
    done = typed(here, "verify", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rounds 1-3 computed again" in done.stdout


def test_a_folder_of_a_stranger_runs_no_metric(here: Path):
    assert typed(here, "run", *WORDS).returncode == 0
    (here / "run" / "summary.json").unlink()
    (here / "own" / "imported").unlink()
    shutil.rmtree(here / "own" / "__pycache__", ignore_errors=True)
    for command in ("resume", "verify"):
        done = typed(here, command, "run", cache="another")
        assert done.returncode == 2
        assert done.stderr == (
            "fedexp: run names own.scores:f2, which was never run here; if you know where it comes from, add "
            "--trust-modules own\n"
        )
    assert typed(here, "report", "run", cache="another").returncode == 0
    assert not (here / "own" / "imported").exists()
    done = typed(here, "resume", "run", "--trust-modules", "own", cache="another")
    assert done.returncode == 0, done.stderr
    assert (here / "own" / "imported").exists()


def test_an_answer_that_is_no_number_ends_the_run_in_one_line(here: Path):
    words = [word for word in WORDS if not word.startswith("evaluation.metrics")]
    done = typed(here, "run", *words, "evaluation.metrics=[own.scores:broken]", "engine.workers=2")
    assert done.returncode == 2
    assert done.stderr == (
        "fedexp: evaluation.metrics: own.scores:broken must return a finite number, or NaN where it is undefined, got "
        "str much\n"
    )


def test_a_binary_auroc_is_that_of_the_second_class(here: Path):
    """The function is given what the built-in metric is computed from."""
    (here / "own" / "scores.py").write_text(
        "import numpy as np\n"
        "def keep(probabilities, targets):\n"
        "    np.savez('outputs.npz', probabilities=probabilities, targets=targets)\n"
        "    return 0.0\n"
    )
    words = [word for word in WORDS if not word.startswith("evaluation.")]
    done = typed(here, "run", *words, "evaluation.metrics=[own.scores:keep,auroc]", "engine.workers=1")
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(here / "run" / "metrics.csv")
    with np.load(here / "outputs.npz") as outputs:
        by_hand = roc_auc_score(outputs["targets"], outputs["probabilities"][:, 1])
    assert table["test_auroc"].iloc[-1] == pytest.approx(by_hand, abs=1e-12)
