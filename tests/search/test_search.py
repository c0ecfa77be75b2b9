"""Whole searches: the budget, no look at test data, kills, several processes at once."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from command_line import complaint
from processes import Command

from fedexp import cli
from fedexp.files.locks import file_lock
from fedexp.run.progress import Progress
from fedexp.search.study import JOURNAL, LOCK, Budget, MethodTrials

pytestmark = pytest.mark.skipif(find_spec("optuna") is None, reason="optuna is not installed")
WORDS = (
    *("dataset=synthetic", "dataset.train_size=300", "dataset.test_size=60", "scenario.clients=6"),
    *("scenario.participants=3", "rounds=6", "engine=loop", "engine.workers=1"),
    *("selector=random,all", "local.lr=tag(log,interval(0.001,1e8))", "seed=0,1"),
)
MATCHING = ("scenario.participants=2", "aggregator=choice(fedavg,pfnm)")  # which changes the layout
TRIALS = 7  # pruning begins after five
SEED = ("--seed", "2")  # of draws of which some learn
CUT = 4  # what is killed and taken up again needs no more


def search(folder: Path, *more: str) -> pd.DataFrame:
    """The trials of a search in this folder."""
    assert cli.main(["search", *WORDS, *SEED, *more, "--trials", str(TRIALS), "--out", str(folder)]) == 0
    return pd.read_csv(folder / "search.csv")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search") / "whole"
    search(folder)
    return folder


def test_every_method_has_the_same_budget(whole: Path):
    trials = pd.read_csv(whole / "search.csv")
    assert trials.groupby("method").size().to_dict() == {"selector=random": TRIALS, "selector=all": TRIALS}
    assert set(trials["state"]) <= {"complete", "pruned", "fail"}
    assert {"complete", "pruned"} <= set(trials["state"]), "a learning rate of a million is not worth its rounds"


def test_where_looks_follow_the_clock_no_trial_is_cut_off(tmp_path: Path):
    trials = search(tmp_path / "clock", "selector=all", "seed=0", "fleet=simulated", "evaluation.every_s=60")
    assert set(trials["state"]) <= {"complete", "fail"}
    rounds = [len(pd.read_csv(table)) for table in tmp_path.glob("clock/**/metrics.csv")]
    assert max(rounds) == 6
    assert rounds.count(6) >= trials["state"].tolist().count("complete") > 2


def test_a_score_is_the_mean_of_the_seeds_last_validation_accuracies(whole: Path):
    trials = pd.read_csv(whole / "search.csv")
    for trial in trials.query("state == 'complete'").to_dict("records"):
        last = [
            pd.read_csv(whole / trial["method"] / str(trial["trial"]) / seed / "metrics.csv")["validation_accuracy"]
            for seed in ("seed=0", "seed=1")
        ]
        assert trial["validation_accuracy"] == pytest.approx(sum(column.iloc[-1] for column in last) / 2)


def test_no_look_is_taken_at_test_data(whole: Path):
    tables = list(whole.glob("*/*/*/metrics.csv"))
    assert len(tables) > 2 * TRIALS
    for table in tables:
        assert pd.read_csv(table)[["test_loss", "test_accuracy"]].isna().to_numpy().all()


def test_the_end_names_the_commands_for_new_seeds(whole: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["resume", str(whole)]) == 0
    said = capsys.readouterr().out
    assert "#" not in said, "no trial was left"
    trials = pd.read_csv(whole / "search.csv").sort_values(["validation_accuracy", "trial"], ascending=[False, True])
    best = trials[trials["method"] == "selector=all"].iloc[0]
    assert f"selector=all local.lr={float(best['local.lr'])!r} seed=2,3,4\n" in said


@pytest.mark.parametrize(("place", "notes"), [("null", 1), ("clients", 0)])
def test_who_judges_personal_methods_by_the_global_model_is_told(
    tmp_path: Path, monkeypatch, capsys, place: str, notes: int
):
    monkeypatch.chdir(tmp_path)
    words = ("algorithm=ditto", "rounds=1", "pictures=false", "evaluation.personal_fraction=0.2")
    budget = ("--trials", "1", "--out", "found")
    assert cli.main(["search", *words, f"evaluation.validation_at={place}", "local.lr=choice(0.1,0.2)", *budget]) == 0
    out = capsys.readouterr().out
    assert out.count("note  trials are judged by the global model, which the clients") == notes
    assert ("evaluation.validation=true" in out.splitlines()[-2]) == (place == "clients"), "else all is trained on"
    assert not list(Path("found").rglob("client_scores.csv")), "it is of what decides in the end"


def test_an_interrupted_search_says_how_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedexp.search.trial.complete", interrupted)
    assert cli.main(["search", *WORDS, "--out", "cut"]) == 130
    assert complaint(capsys) == "fedexp: interrupted; continue with: fedexp resume cut"


def test_a_search_whose_folder_is_gone_ends_and_makes_none_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def renamed(*_: object) -> None:
        Path("gone").rename("elsewhere")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Progress, "round", renamed)
    assert cli.main(["search", *WORDS, "--out", "gone"]) == 1
    assert complaint(capsys) == (
        "fedexp: gone was removed, renamed or replaced while it was in use; put it back; continue with: fedexp resume "
        "gone"
    )
    assert [path.name for path in Path().iterdir()] == ["elsewhere"]


def test_options_of_ones_own_are_in_the_commands_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "own" / "experiment").mkdir(parents=True)
    (tmp_path / "own" / "experiment" / "mine.yaml").write_text("# @package _global_\n# Mine\nrounds: 1\n")
    monkeypatch.chdir(tmp_path)
    words = ("--config-dir", "own", "--trials", "1", "--out", "one", "seed=0", "selector=all", "experiment=mine")
    assert cli.main(["search", *WORDS, *words]) == 0
    assert f"fedexp run -m --config-dir {tmp_path / 'own'} dataset=synthetic" in capsys.readouterr().out


def test_killed_and_taken_up_again_by_two_processes(whole: Path, tmp_path: Path):
    """The trial that was under way keeps its hyperparameters and its rounds; nobody has more than the budget."""
    begun = Command(tmp_path, "search", *WORDS, *SEED, "checkpoint_s=0", "--trials", str(CUT), "--out", "cut")
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("cut/*/*/*/summary.json"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    begun.kill()
    both = [Command(tmp_path, "resume", "cut") for _ in range(2)]
    for one in both:
        one.finish()
    ours, theirs = pd.read_csv(tmp_path / "cut" / "search.csv"), pd.read_csv(whole / "search.csv")
    assert ours.groupby("method").size().to_dict() == {"selector=random": CUT, "selector=all": CUT}
    assert "running" not in set(ours["state"])
    same = ours.merge(theirs, on=["method", "trial"])
    first = same[same["trial"] < 3]
    assert first["local.lr_x"].tolist() == first["local.lr_y"].tolist()
    assert first["validation_accuracy_x"].tolist() == first["validation_accuracy_y"].tolist()


class KilledError(BaseException):
    """Ends a process at once, as far as the search knows."""


@pytest.mark.parametrize("moment", ["report", "should_prune"])
def test_killed_between_a_saved_round_and_the_look_at_it(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
):
    """Whatever round of a pruned trial it is: the trial is pruned after the same one."""
    from optuna.trial import Trial

    trials = pd.read_csv(whole / "search.csv")
    pruned, method = trials[trials["state"] == "pruned"].iloc[0], getattr(Trial, moment)
    last = int(pruned["last_round"])

    def die(trial: Trial, *words: object) -> object:
        look = words[1] if words else max(trial.storage.get_trial(trial._trial_id).intermediate_values)
        if (trial.study.study_name, trial.number, look) == (pruned["method"], pruned["trial"], last):
            raise KilledError
        return method(trial, *words)

    with monkeypatch.context() as patch:
        patch.setattr(Trial, moment, die)
        with pytest.raises(KilledError):
            search(tmp_path / "cut", "checkpoint_s=0")
    assert cli.main(["resume", str(tmp_path / "cut")]) == 0
    assert (tmp_path / "cut" / "search.csv").read_bytes() == (whole / "search.csv").read_bytes()
    table = tmp_path / "cut" / pruned["method"] / str(pruned["trial"]) / "seed=0" / "metrics.csv"
    assert pd.read_csv(table)["round"].tolist() == list(range(1, last + 1))


def test_a_process_that_is_killed_while_it_writes_the_journal_locks_nobody_out(tmp_path: Path):
    held = "import sys, pathlib, time; from fedexp.search.study import JournalLock; lock = JournalLock("
    held += "pathlib.Path(sys.argv[1])); lock.acquire(); print('held', flush=True); time.sleep(100)"
    (tmp_path / JOURNAL).touch()
    lock = tmp_path / LOCK
    with subprocess.Popen([sys.executable, "-c", held, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(TimeoutError), file_lock(lock, patience_s=0):
            pass
        holder.kill()
    assert MethodTrials(tmp_path, (), Budget(trials=1)).trials() == []
    assert [path.name for path in tmp_path.iterdir() if path.is_symlink()] == []


def test_a_line_that_a_killed_process_did_not_finish_counts_for_nothing(whole: Path, tmp_path: Path):
    folder = tmp_path / "cut"
    shutil.copytree(whole, folder)
    lines = (folder / JOURNAL).read_text().splitlines(keepends=True)
    (folder / JOURNAL).write_text("".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])  # the last score
    assert cli.main(["resume", str(folder)]) == 0
    assert (folder / "search.csv").read_bytes() == (whole / "search.csv").read_bytes()


@pytest.mark.parametrize("other", ["interval(0.3,0.4)", "interval(0.001,1e8)", "choice(0.1,0.2)"])
def test_trials_of_another_space_are_refused(whole: Path, tmp_path: Path, capsys, other: str):
    folder = tmp_path / "edited"
    shutil.copytree(whole, folder)
    settings = (folder / "search.yaml").read_text().replace("trials: 7", "trials: 8")
    (folder / "search.yaml").write_text(settings.replace("tag(log,interval(0.001,1e8))", other))
    assert cli.main(["resume", str(folder)]) == 2
    told = "but local.lr of trial 0 of selector=random was not; restore study.journal and search.yaml, or search in"
    assert told in complaint(capsys)
    assert not list(folder.glob("*/7")), "no trial begins"


def without_last_value(line: str) -> str:
    return re.sub(r'"values":\[[^]]*\]', '"values":null', line)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"op_code"', '"opcode"', 1),
        lambda text: "[]\n" + text,
        without_last_value,
        lambda text: text.replace('"local.lr"', '"local.rate"'),
    ],
)
def test_an_edited_journal_is_one_line(
    whole: Path, tmp_path: Path, change: Callable[[str], str], capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "edited"
    shutil.copytree(whole, folder)
    (folder / JOURNAL).write_text(change((folder / JOURNAL).read_text()))
    assert cli.main(["resume", str(folder)]) == 2
    assert f"restore {JOURNAL}" in (message := complaint(capsys)) or "restore it, or search in another" in message


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("local.lr=interval(-1,1)",), "point 0 (local.lr=-1.0"),
        ((*MATCHING, "selector=greedyfed,random"), "selector=greedyfed aggregator=pfnm"),
        ((*MATCHING, "selector=random,greedyfed"), "selector=greedyfed aggregator=pfnm"),
        (("algorithm=fedavg,fedavg", "local.lr=interval(0.1,1)"), "got algorithm=fedavg twice; leave one out"),
        (("dataset=choice(digits,diabetes)",), "must have one main metric for all trials, got accuracy, rmse; set"),
        (("local.lr=interval(0.1,1)", "--trials", "0"), "--trials must be an integer >= 1, got 0"),
        (("local.lr=interval(0.1,1)", "--trial", "3"), "unknown flag --trial; did you mean --trials?"),
        (("local.rl=interval(0.1,1)",), "unknown key local.rl; "),
        (("rounds=3",), "a search must vary something"),
    ],
)
def test_a_wrong_search_is_refused_before_anything_is_made(
    words: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["search", *words]) == 2
    assert told in complaint(capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_does_not_learn_the_readers_environment(tmp_path: Path, monkeypatch, capsys):
    """What the words asked for when it began is noted; what a stranger's words ask for is refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINE", "s3cr3t")
    asked = (*WORDS, "data_dir=${oc.env:MINE}", "--trials", "1", "--out", "mine")
    monkeypatch.setattr("fedexp.search.search.run_search", lambda *_: "")
    assert cli.main(["search", *asked]) == 0
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINE", "s3cr3t")
    path = Path("mine/search.yaml")
    assert "- data_dir=s3cr3t" in path.read_text()
    path.write_text(path.read_text().replace("data_dir=s3cr3t", "local.epochs=${oc.env:MINE}"))
    capsys.readouterr()
    assert cli.main(["resume", "mine"]) == 2
    said = complaint(capsys)
    assert said == (
        "fedexp: mine/search.yaml: a setting must refer to keys of the config alone, got local.epochs=${oc.env:MINE}; "
        "write the value in its place"
    )
