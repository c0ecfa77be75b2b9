"""Whole contests: killed and gone on with, what is compared with what, and mistakes in one line."""

import re
import shutil
import time
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from command_line import complaint
from processes import Command

from fedexp import cli
from fedexp.config import saved_config
from fedexp.config.trust import NO_TRUST
from fedexp.contest.methods import Contender
from fedexp.contest.plan import NAME, ContestPlan, load
from fedexp.files.locks import file_lock
from fedexp.search.study import Budget, MethodTrials
from fedexp.sweep.launchers.contract import PointEnd

pytestmark = pytest.mark.skipif(find_spec("optuna") is None, reason="optuna is not installed")
RATE = "local.lr=tag(log,interval(0.01,1))"
WORDS = ("algorithm=fedavg,fedprox", "rounds=3", "pictures=false", "checkpoint_s=0", "engine.workers=1", RATE)
BUDGET = ("--trials", "3", "--seeds", "2", "--out", "contest")
METHODS = """
- name: plain
  words: algorithm=fedavg
- name: near
  words: algorithm=fedprox
  search: local.mu=interval(0,1)
"""


def tables(folder: Path) -> dict[str, str]:
    """The page, and the tables without what a clock measured."""
    page = {"page": (folder / "contest.md").read_text()}
    frames = {path.relative_to(folder).as_posix(): pd.read_csv(path) for path in folder.glob("[rs]*/**/*.csv")}
    keep = {name: frame for name, frame in frames.items() if name.endswith(("search.csv", "metrics.csv"))}
    return page | {name: frame.filter(regex="(?<!_s)$").to_csv() for name, frame in keep.items()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    Command(place, "contest", *WORDS, *BUDGET).finish()
    return place / "contest"


@pytest.mark.parametrize(("key", "there"), [("seeds", 2), ("trials", 3)])
def test_a_plan_that_says_less_than_there_is_has_no_page(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, there: int
):
    folder = tmp_path / "contest"
    shutil.copytree(whole, folder)
    plan, page = (folder / "contest.yaml").read_text(), (folder / "contest.md").read_bytes()
    assert f"{key}: {there}\n" in plan
    (folder / "contest.yaml").write_text(plan.replace(f"{key}: {there}\n", f"{key}: 1\n"))
    assert cli.main(["resume", str(folder)]) == 2
    assert f"has {there} {key} of algorithm=fedavg, but contest.yaml says 1, and so would the page" in complaint(capsys)
    assert (folder / "contest.md").read_bytes() == page
    (folder / "contest.yaml").write_text(plan)
    assert cli.main(["resume", str(folder)]) == 0


def test_all_methods_have_the_same_first_trials_and_new_seeds(whole: Path):
    plain, near = (pd.read_csv(whole / f"search/algorithm={name}/search.csv") for name in ("fedavg", "fedprox"))
    assert plain["local.lr"].tolist() == near["local.lr"].tolist()
    assert plain["state"].tolist() == ["complete"] * 3
    runs = {path.relative_to(whole / "runs").as_posix() for path in whole.glob("runs/*/*")}
    assert runs == {f"algorithm={name}/seed={seed}" for name in ("fedavg", "fedprox") for seed in (1, 2)}


def test_trials_see_no_test_data_and_the_last_runs_do(whole: Path):
    for table in whole.glob("search/*/*/*/*/metrics.csv"):
        assert not pd.read_csv(table)["test_accuracy"].notna().to_numpy().any()
    assert len([pd.read_csv(table)["test_accuracy"].iloc[-1] for table in whole.glob("runs/*/*/metrics.csv")]) == 4


def test_the_page_tells_the_numbers_of_the_tables(whole: Path):
    page = (whole / "contest.md").read_text()
    values = sorted(pd.read_csv(whole / "search/algorithm=fedavg/search.csv")["validation_accuracy"])
    cells = " | ".join(f"{value:.4f}" for value in (values[2], values[1], values[0]))
    assert re.search(rf"\| algorithm=fedavg +\| +3 \| +0 \| {cells} \|", page)
    ends = [pd.read_csv(whole / f"runs/algorithm=fedprox/seed={seed}/metrics.csv")["test_accuracy"] for seed in (1, 2)]
    assert re.search(rf"\| algorithm=fedprox \| +2 \| +{sum(end.iloc[-1] for end in ends) / 2:.4f} \|", page)
    assert "## algorithm=fedprox (A) against algorithm=fedavg (B)" in page
    assert "Holm-corrected over the 1 row(s)" in page
    latex = (whole / "contest.tex").read_text()
    titles = ["Best values", "Results", "Sensitivity", "Differences"]
    assert [line[2:] for line in latex.splitlines() if line[2:] in titles] == titles
    interval = re.search(r"\| algorithm=fedprox +\| +2 \| +(0\.\d+) \|", page)
    assert interval
    assert f"algorithm=fedprox & 2 & {interval[1]} & - " in latex


@pytest.mark.parametrize("ready", ["search/*fedavg/all/1/*/metrics.csv", "search/*fedprox/all/2", "runs/*/*/state.pt"])
def test_killed_and_gone_on_with_it_ends_the_same(whole: Path, tmp_path: Path, ready: str):
    begun = Command(tmp_path, "contest", *WORDS, *BUDGET)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "contest").glob(ready)) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert begun.kill() == -9
    assert not (tmp_path / "contest/contest.md").exists()
    again = ("resume", "contest") if "runs" in ready else ("contest", *WORDS, *BUDGET)
    Command(tmp_path, *again).finish()
    assert tables(tmp_path / "contest") == tables(whole)


def test_a_file_gives_each_method_keys_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("methods.yaml").write_text(METHODS)
    words = ("rounds=1", "pictures=false", RATE, "--trials", "2", "--seeds", "1")
    assert cli.main(["contest", "methods.yaml", *words, "--out", "a"]) == 0
    plain, near = (pd.read_csv(f"a/search/{name}/search.csv") for name in ("plain", "near"))
    assert plain["local.lr"].tolist() == near["local.lr"].tolist()
    assert near["local.mu"].between(0, 1).all()
    said = capsys.readouterr().out
    assert "## near (A) against plain (B)" in said
    assert cli.main(["contest", "methods.yaml", *words, "--out", "a"]) == 0
    assert capsys.readouterr().out.endswith(said[said.index("# Contest") :]), "nothing is left to do"
    assert cli.main(["contest", "methods.yaml", *words, "rounds=2", "--out", "a"]) == 2
    assert complaint(capsys) == "fedexp: a holds another contest; give another --out"


def test_more_seeds_are_added_to_the_same_trials(whole: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, "contest")
    trials = [path.stat().st_mtime_ns for path in sorted(Path("contest/search").rglob("metrics.csv"))]
    first = tables(Path("contest"))["runs/algorithm=fedavg/seed=1/metrics.csv"]
    more = ("--trials", "3", "--seeds", "3", "--out", "contest")
    assert cli.main(["contest", *WORDS, *more]) == 0
    said, page = capsys.readouterr().out, Path("contest/contest.md").read_text()
    needed = "3 new seeds can show no difference, whatever comes out: the smallest p there is is 0.25, corrected for 1"
    assert (
        f"note  {needed} comparison(s). 6 are needed; the same command with --seeds 6 goes on and adds them.\n" in said
    )
    assert f"* {needed}" in page
    assert "on seeds 1 to 3\n" in page
    assert "* Seeds were added after the results of 2 had been seen." in page
    assert re.search(r"\| algorithm=fedprox \| +3 \| +0\.\d+ \| +-?0\.\d+ to", page)
    assert "3 pair(s): seed 1, seed 2, seed 3" in page
    assert trials == [path.stat().st_mtime_ns for path in sorted(Path("contest/search").rglob("metrics.csv"))]
    assert tables(Path("contest"))["runs/algorithm=fedavg/seed=1/metrics.csv"] == first
    assert cli.main(["contest", *WORDS, *BUDGET]) == 2
    assert complaint(capsys) == (
        "fedexp: contest has 3 new seeds already, got --seeds 2; give --seeds 3 or more, or another --out"
    )
    assert cli.main(["contest", *WORDS, *more]) == 0
    assert Path("contest/contest.md").read_text() == page


def test_a_contest_that_is_worked_on_gets_no_more_seeds(whole: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, "contest")
    plan = Path("contest/contest.yaml").read_bytes()
    with file_lock(Path("contest/.lock")):
        assert cli.main(["contest", *WORDS, "--trials", "3", "--seeds", "3", "--out", "contest"]) == 2
    assert "fedexp: contest is being run by " in complaint(capsys)
    assert Path("contest/contest.yaml").read_bytes() == plan


def test_personal_methods_are_tuned_and_compared_by_the_models_that_clients_use(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    federation = ("federation=shards", "federation.shards_per_client=2", "evaluation.personal_fraction=0.2")
    words = ("algorithm=fedavg,ditto", "rounds=2", "pictures=false", "engine.workers=1", *federation, RATE)
    budget = ("--trials", "2", "--seeds", "2")
    assert cli.main(["contest", *words, "evaluation.validation_at=clients", *budget, "--out", "a"]) == 0
    page = Path("a/contest.md").read_text()
    assert (
        "by validation accuracy of the models that clients use, each on examples that its client set apart (mean"
        in page
    )
    for method in ("fedavg", "ditto"):
        ends = [pd.read_csv(path).iloc[-1] for path in Path(f"a/runs/algorithm={method}").rglob("metrics.csv")]
        personal = sum(end["personal_accuracy"] for end in ends) / 2
        assert re.search(rf"\| algorithm={method} +\| +2 \| +{personal:.4f} \|", page)
        assert all(end["validation_accuracy"] != end["test_accuracy"] for end in ends)
    assert re.search(r"\| personal_accuracy \| more ", page)
    assert cli.main(["contest", *words, *budget, "--out", "b"]) == 0
    page = Path("b/contest.md").read_text()
    assert "with evaluation.validation_at=clients a contest is about the models that they use" in page
    assert "| mean test_accuracy |" in page
    assert capsys.readouterr().out.count("note  trials are judged by the global model, which the clients") == 1
    nothing_held_out = [word for word in words if "personal" not in word]
    assert cli.main(["contest", *nothing_held_out, "evaluation.validation_at=clients", *budget]) == 2
    assert "nothing is held out for it; set evaluation.personal_fraction=0.2" in complaint(capsys)


def resume_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goes on with the contest here where every run fails."""
    failing = lambda missing, *_: ((run, PointEnd(run, 1, "the disk is full")) for run in missing)  # noqa: E731
    monkeypatch.setattr("fedexp.contest.tuned_runs.run_points", failing)
    assert cli.main(["resume", "contest"]) == 1


def test_a_method_whose_new_runs_all_failed_is_named_with_the_reason(whole: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, "contest")
    shutil.rmtree("contest/runs/algorithm=fedprox")
    Path("contest/contest.md").unlink()
    resume_on_a_full_disk(monkeypatch)
    assert complaint(capsys) == (
        "fedexp: all 2 run(s) of algorithm=fedprox on new seeds failed, such as contest/runs/algorithm=fedprox/seed=1: "
        "the disk is full; fedexp resume contest tries again"
    )
    assert not Path("contest/contest.md").exists()


def test_methods_without_a_seed_in_common_are_named_with_the_reason(whole: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, "contest")
    for lost in ("fedavg/seed=1", "fedprox/seed=2"):
        shutil.rmtree(f"contest/runs/algorithm={lost}")
    resume_on_a_full_disk(monkeypatch)
    assert complaint(capsys) == (
        "fedexp: on each of 2 new seed(s) the run of algorithm=fedavg or of algorithm=fedprox failed, such as "
        "contest/runs/algorithm=fedprox/seed=2: the disk is full; fedexp resume contest tries again"
    )


def drop_all_updates(metrics: Path) -> None:
    """Makes a finished run one in which no update of any round was finite."""
    frame = pd.read_csv(metrics)
    frame.assign(**{"aggregator.dropped": frame["participants"]}).to_csv(metrics, index=False)


def test_a_finished_run_that_failed_leaves_its_pair_out_on_every_pass(whole: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, "contest")
    failed = "contest/runs/algorithm=fedprox/seed=2"
    drop_all_updates(Path(failed) / "metrics.csv")
    for _ in range(2):
        assert cli.main(["resume", "contest"]) == 1
        assert complaint(capsys) == f"fedexp: 1 run(s) failed, such as {failed}: no update of any round was finite"
    page = Path("contest/contest.md").read_text()
    assert "* 1 pair(s): seed 1\n" in page
    assert f"* left out, no update of any round was finite: {failed}\n" in page
    assert re.search(r"\| algorithm=fedprox \| +1 \| ", page)
    drop_all_updates(Path("contest/runs/algorithm=fedavg/seed=1/metrics.csv"))
    assert cli.main(["resume", "contest"]) == 1
    assert complaint(capsys) == (
        "fedexp: on each of 2 new seed(s) the run of algorithm=fedavg or of algorithm=fedprox failed, such as "
        f"{failed}: no update of any round was finite"
    )


def test_no_values_are_best_while_another_process_runs_a_trial(whole: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, "contest")
    path = Path("contest/contest.yaml")
    path.write_text(path.read_text().replace("trials: 3", "trials: 4"))
    method = Path("contest/search/algorithm=fedavg")
    with MethodTrials(method, (), Budget(trials=4)).next_trial() as trial:
        assert trial.number == 3
        assert cli.main(["resume", "contest"]) == 1
    assert complaint(capsys) == (
        "fedexp: contest/search/algorithm=fedavg/all/3 must have ended before the best values are chosen, but another "
        "process runs it; once it has, fedexp resume contest goes on"
    )
    assert tables(Path("contest"))["page"] == tables(whole)["page"]


def test_runs_with_other_values_than_the_best_are_refused(whole: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, "contest")
    path = Path("contest/runs/algorithm=fedprox/seed=2/config.json")
    (rate,) = (word for word in saved_config.read(path.parent).overrides if word.startswith("local.lr="))
    path.write_text(path.read_text().replace(f'"{rate}"', '"local.lr=0.5"'))
    assert cli.main(["resume", "contest"]) == 2
    assert complaint(capsys) == (
        f"fedexp: contest/runs/algorithm=fedprox/seed=2 must be a run with {rate}, got one with local.lr=0.5; move it "
        "away, and it is run again"
    )


def test_the_folder_of_a_contest_does_not_depend_on_the_number_of_seeds(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedexp.contest.contest.run_contest", lambda *_: "")
    for seeds in ("2", "4"):
        assert cli.main(["contest", *WORDS, "--seeds", seeds]) == 0
    (folder,) = (path.parent for path in Path("outputs/contest").glob("*/contest.yaml"))
    plan = (folder / "contest.yaml").read_text()
    assert "seeds: 4" in plan
    assert "looked" not in plan, "nobody has seen a page"
    assert capsys.readouterr().err == ""


FEDAVG = "algorithm=fedavg,fedprox"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "a contest needs two methods or more, as words (algorithm=fedavg,fedprox) or in a file"),
        ((RATE,), "(methods.yaml); got none"),
        (("algorithm=fedavg", RATE), "(methods.yaml); got none"),
        (("algorithm=fedavg,fedavg", RATE), "each method once, got algorithm=fedavg and algorithm=fedavg"),
        ((FEDAVG, RATE, "--trials", "0"), "--trials must be an integer >= 1, got 0"),
        ((FEDAVG, RATE, "--seeds", "0"), "--seeds must be an integer >= 1, got 0"),
        ((FEDAVG, "rounds=3"), "a search must vary something"),
        ((FEDAVG, "local.rl=interval(0.1,1)"), "unknown key local.rl; known: local.batch_size"),
        ((FEDAVG, "rounds=choice(2,3)"), "algorithm=fedavg: rounds must have one value; it is not tuned here"),
        (
            ("stop=rounds,patience", "evaluation.validation=true", RATE),
            "all methods of a contest must have the same stop, got rounds for stop=rounds and patience for",
        ),
        (("rounds=2,3", RATE), "all methods of a contest must have the same rounds, got 2 for rounds=2 and 3 for"),
        (("none.yaml", RATE), "none.yaml must hold a method a line, with name, words and search as texts: [Errno 2]"),
        (("odd.csv", RATE), "odd.csv must hold a method a line, with name, words and search as texts: got {'name'"),
        (("twice.csv", RATE), "a contest must have each method once, got a and a"),
        (("bare.csv",), "b: a search must vary something"),
        (("bare.csv", "engine=loop,stacked", RATE), "a: engine must have one value; it is not tuned here"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_made(
    words: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    Path("odd.csv").write_text("name,word\na,algorithm=fedavg\n")
    Path("twice.csv").write_text("name,words\na,algorithm=fedavg\na,algorithm=fedprox\n")
    Path("bare.csv").write_text(f'name,words,search\na,algorithm=fedavg,"{RATE}"\nb,algorithm=fedprox,\n')
    assert cli.main(["contest", *words]) == 2
    assert told in complaint(capsys)
    assert not list(tmp_path.glob("outputs"))


def test_a_folder_that_somebody_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedexp.contest.contest.run_contest", lambda *_: "")
    assert cli.main(["contest", *WORDS, *BUDGET]) == 0
    path = Path("contest/contest.yaml")
    plan = path.read_text()
    for old, new, told in (
        ("trials: 3", "trials: many", "must hold the plan of a contest; is it damaged?"),
        ("trials: 3", "trials: 1000000000", "must hold the plan of a contest; is it damaged?"),
        ("name: algorithm=fedavg", "name: ../../fedavg", "the name of a method must begin with a letter or digit"),
        ("rounds=3", "hydra.run.dir=/", "a setting must be one of the experiment's"),
        ("rounds=3", "rounds=${oc.env:HOME}", "a setting must refer to keys of the config alone"),
    ):
        path.write_text(plan.replace(old, new, 1))
        capsys.readouterr()
        assert cli.main(["resume", "contest"]) == 2
        assert told in complaint(capsys)


def test_a_seed_may_be_a_date(tmp_path: Path):
    methods = tuple(Contender(name, (f"selector={name}",)) for name in ("random", "afl"))
    plan = ContestPlan(methods=methods, words=(), trials=1, seeds=1, seed=20250101)
    (tmp_path / NAME).write_text(plan.text())
    assert load(tmp_path, NO_TRUST) == plan
