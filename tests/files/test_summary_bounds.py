"""Bounds on the numbers of a summary, and the exit code of a run that does not keep them."""

import json
from pathlib import Path

import pytest
from command_line import complaint

from fedexp import cli
from fedexp.core.errors import ConfigError
from fedexp.files.summary_bounds import Bound, failures, parse
from fedexp.run.validate import refuse_bounds

SUMMARY = {"final_accuracy": 0.75, "rounds": 3, "roa": {"0.7": 2, "0.9": None}, "stopped": None}
TINY = (
    *("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6", "rounds=2"),
    *("engine=loop", "engine.workers=1", "pictures=false"),
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("final_accuracy < 0.75", None),
        ("final_accuracy <= 0.75", "final_accuracy <= 0.75 holds for run, it is 0.75"),
        ("final_accuracy<.8", "final_accuracy < 0.8 holds for run, it is 0.75"),
        ("rounds >= 3", "rounds >= 3 holds for run, it is 3"),
        ("roa@0.7 > 1", "roa@0.7 > 1 holds for run, it is 2"),
        ("roa@0.7 > 2", None),
        (
            "roa@0.9 > 50",  # never reached
            "roa@0.9 > 50 cannot be judged for run: 0.9 was never reached",
        ),
        ("roa@.70 > 1", "roa@.70 > 1 holds for run, it is 2"),
        (
            "roa@0.42 > 1",
            "roa@0.42 > 1 cannot be judged for run: its summary has no roa@0.42, only final_accuracy, rounds",
        ),
        (
            "final_auroc < 0.5",
            "final_auroc < 0.5 cannot be judged for run: its summary has no final_auroc, only final_accuracy, rounds",
        ),
    ],
)
def test_by_hand(text: str, said: str | None):
    assert failures([parse(text)], {Path("run"): SUMMARY}) == ([] if said is None else [f"failed: {said}"])


def test_every_run_is_judged_by_every_bound():
    bounds, better = [Bound("rounds", "<", 9), Bound("final_accuracy", "<", 0.8)], {**SUMMARY, "final_accuracy": 0.9}
    lines = failures(bounds, {Path("a"): SUMMARY, Path("b"): better})
    assert [line.split()[1] for line in lines] == ["rounds", "final_accuracy", "rounds"]


@pytest.mark.parametrize("text", ["", "final_accuracy", "accuracy < 0.8", "final_accuracy == 1", "rounds < many"])
def test_what_is_no_bound_is_one_line(text: str):
    with pytest.raises(ConfigError, match=r'--fail-if must be "NAME SIGN NUMBER" .* got '):
        parse(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("test_accuracy < 0.8", "did you mean final_accuracy?"),
        ("round < 3", "did you mean rounds?"),
    ],
)
def test_what_is_nearly_a_bound_is_told_the_nearest(text: str, hint: str):
    with pytest.raises(ConfigError) as error:
        parse(text)
    assert str(error.value).endswith(f"got {text!r}; {hint}")


@pytest.mark.parametrize("name", ["final_accuracy", "best_f2", "f2_auc", "loss_auc", "final_personal_accuracy"])
def test_what_any_run_measures_may_be_bounded(name: str):
    refuse_bounds([Bound(name, "<", 1)], [None, ["mine:f2"]])


@pytest.mark.parametrize(
    ("name", "hint"),
    [("final_acuracy", "final_accuracy"), ("best_F2", "best_f2"), ("acuracy_auc", "accuracy_auc")],
)
def test_a_metric_that_no_run_measures_is_refused(name: str, hint: str):
    with pytest.raises(ConfigError) as error:
        refuse_bounds([Bound("rounds", "<", 1), Bound(name, "<", 1)], [["accuracy"], ["mine:f2"]])
    assert str(error.value) == f"--fail-if must bound a metric that is measured, got {name}; did you mean {hint}?"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


def test_a_run_below_its_bound_ends_with_1_and_one_that_keeps_it_with_0(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["run", "-q", *TINY, "hydra.run.dir=kept", "--fail-if", "final_accuracy < 0"]) == 0
    assert capsys.readouterr() == ("", "")
    words = ["run", "-q", *TINY, "hydra.run.dir=missed", "--fail-if", "final_accuracy <= 1", "--fail-if", "rounds < 2"]
    assert cli.main(words) == 1
    final = json.loads(Path("missed/summary.json").read_text())["final_accuracy"]
    assert complaint(capsys) == f"fedexp: failed: final_accuracy <= 1 holds for missed, it is {final:.6g}"


def test_every_point_of_a_sweep_must_keep_it(capsys: pytest.CaptureFixture[str]):
    words = ["run", "-q", "-m", *TINY[:4], *TINY[5:], "rounds=1,2", "hydra.sweep.dir=sweep", "--fail-if", "rounds < 2"]
    assert cli.main(words) == 1
    assert complaint(capsys) == "fedexp: failed: rounds < 2 holds for sweep/0, it is 1"


def test_resume_judges_what_it_ends_with(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["run", "-q", "-m", *TINY[:4], *TINY[5:], "rounds=1,2", "hydra.sweep.dir=sweep"]) == 0
    assert cli.main(["resume", "-q", "sweep/1", "--fail-if", "rounds > 2"]) == 0
    assert cli.main(["resume", "-q", "sweep/1", "--fail-if", "rounds < 3"]) == 1
    assert complaint(capsys) == "fedexp: failed: rounds < 3 holds for sweep/1, it is 2"
    assert cli.main(["resume", "-q", "sweep", "--fail-if", "rounds < 2"]) == 1
    assert complaint(capsys) == "fedexp: failed: rounds < 2 holds for sweep/0, it is 1"


def test_a_first_model_is_no_result(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["run", "-q", "experiment=smoke", "local.lr=1e30", "hydra.run.dir=lost"]) == 1
    complaint(capsys)
    assert cli.main(["resume", "-q", "lost", "--fail-if", "final_accuracy < 0"]) == 1
    assert complaint(capsys) == (
        "fedexp: no update of any round was finite, so all were dropped and the model is the first one; lower "
        "local.lr, or look for what makes the updates infinite"
    )


def test_resume_refuses_a_bound_for_a_search(capsys: pytest.CaptureFixture[str]):
    Path("search").mkdir()
    Path("search/search.yaml").touch()
    assert cli.main(["resume", "search", "--fail-if", "rounds < 2"]) == 2
    assert "--fail-if is for runs and sweeps, and search is a search or a contest" in complaint(capsys)


def test_a_wrong_bound_is_said_before_the_run(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["run", *TINY, "--fail-if", "accuracy < 1"]) == 2
    assert "--fail-if must be" in complaint(capsys)
    for words in ([], ["-m", "seed=0,1"]):
        assert cli.main(["run", *words, *TINY, "--fail-if", "final_acuracy < 1"]) == 2
        assert "got final_acuracy; did you mean final_accuracy" in complaint(capsys)
    assert cli.main(["run", *TINY, "--cfg", "job", "--fail-if", "rounds < 1"]) == 2
    assert "--fail-if is for runs; leave it out with --cfg or --info" in complaint(capsys)
    assert not list(Path.cwd().iterdir())
