import csv
import re
import shlex
from pathlib import Path

import pytest
from command_line import complaint
from run_folders import change_config

from fedexp import cli
from fedexp.replay import replay, results, table

TEXT = """\
source: somebody 2020, table 1
about: Accuracy of tiny runs
measure: test_accuracy
seeds: 2
overrides: [dataset=digits, scenario.clients=4, scenario.participants=2, engine.workers=1, pictures=false]
cells:
  - name: slow
    overrides: [rounds=2]
    published: {value: 0.9}
    minutes: 5
  - name: quick
    overrides: [rounds=1]
    published: {value: 0.5, spread: 0.2, runs: 10}
    others: [{by: another, value: 3}]
    minutes: 1
  - name: never
    overrides: [rounds=1]
    measure: roa@1.0
    published: {value: 1, beyond: true}
    seeds: 1
    minutes: 2
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.yml"
    path.write_text(TEXT)
    return path


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / results.NAME).open() as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("mine")
def test_a_table_is_run_and_its_page_made_again(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["replay", "mine.yml"]) == 0
    said = capsys.readouterr().out
    place = Path("outputs/replay/mine")
    names = [line.partition(":")[0] for line in said.splitlines()[:5]]
    assert names == ["quick, seed 0", "never, seed 0", "quick, seed 1", "slow, seed 0", "slow, seed 1"]
    runs = [path.parent.relative_to(place / "runs").parts for path in place.glob("runs/*/*/metrics.csv")]
    assert sorted((name.partition("-")[0], seed) for name, seed in runs) == [
        ("quick", "0"),
        ("quick", "1"),
        ("slow", "0"),
        ("slow", "1"),
    ]  # never asks for another number of quick's first run
    found = rows(place)
    assert [(one["cell"], one["seed"]) for one in found] == [
        ("slow", "0"), ("slow", "1"), ("quick", "0"), ("quick", "1"), ("never", "0"),
    ]  # fmt: skip
    assert found[-1]["value"] == ""
    for one in found[:-1]:
        run = next(place.glob(f"runs/{one['cell']}-*/{one['seed']}"))
        with (run / "metrics.csv").open() as file:
            assert list(csv.DictReader(file))[-1]["test_accuracy"] == one["value"]
        assert (run / "digests.csv").read_text().split(",")[-3] == one["digest"]
    page = (place / "README.md").read_text()
    assert "| never |" in page.replace("  ", "")
    (place / "README.md").unlink()
    assert cli.main(["replay", "mine.yml", "--seeds", "0"]) == 0
    assert (place / "README.md").read_text() == page
    assert capsys.readouterr().out.startswith("cell")


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("into", [["--into", "kept in $HOME"], []])
def test_the_commands_of_a_page_can_be_typed(into: list[str], capsys: pytest.CaptureFixture[str]):
    """In a shell, in the folder that the page names."""
    assert cli.main(["replay", "mine.yml", "--cells", "quick", "--seeds", "1", *into]) == 0
    page = Path(*into[1:] or ["outputs/replay"]) / "mine" / "README.md"
    footer = page.read_text().splitlines()[-1]
    assert footer.endswith(f"both typed in the folder that holds `{page.parent.parent}` and `mine.yml`.")
    commands = [shlex.split(words) for words in re.findall(r"`(fedexp [^`]*)`", footer)]
    assert [words[:2] for words in commands] == [["fedexp", "replay"], ["fedexp", "verify"]]
    written = page.read_text()
    page.unlink()
    assert [cli.main(words[1:]) for words in commands] == [0, 0], capsys.readouterr().err
    assert page.read_text() == written


def test_only_what_is_missing_is_run(mine: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["replay", "mine.yml", "--cells", "q*", "--seeds", "1"]) == 0
    assert [(one["cell"], one["seed"]) for one in rows(Path("outputs/replay/mine"))] == [("quick", "0")]
    chosen = table.load("mine.yml")
    left = replay.missing_runs(chosen, Path("outputs/replay/mine"), "*", None)
    assert [(job.cell.name, job.seed) for job in left] == [("quick", 1), ("never", 0), ("slow", 0), ("slow", 1)]
    capsys.readouterr()
    assert cli.main(["replay", "mine.yml", "--budget", "0.02"]) == 0  # 72 s: no run of a minute or more after the first
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()[:1]] == ["quick, seed 1"]
    mine.write_text(TEXT.replace("rounds=1]\n    published", "rounds=1, local.lr=0.3]\n    published"))
    changed = replay.missing_runs(table.load("mine.yml"), Path("outputs/replay/mine"), "quick", None)
    assert [job.seed for job in changed] == [0, 1]


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mine.yml", "--cells", "x*"], "--cells must match a cell of mine, got x*; there: slow; quick; never"),
        (
            ["mine.yml", "selector=ucb"],
            "a replay runs its tables as they are, but for hydra/launcher; got selector=ucb",
        ),
        (["mine.yml", "other"], "replay takes one table at a time, got mine.yml, other"),
        (["mine.yml", "--budget", "much"], "--budget must be a number of hours >= 0, got much"),
    ],
)
def test_a_wrong_word_is_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["replay", *words]) == 2
    assert complaint(capsys) == f"fedexp: {told}"
    assert not Path("outputs").exists()


def test_a_cell_that_cannot_work_is_told_before_any_run(mine: Path, capsys: pytest.CaptureFixture[str]):
    mine.write_text(TEXT.replace("[rounds=2]", "[rounds=2, selector=ucbb]"))
    assert cli.main(["replay", "mine.yml"]) == 2
    assert "selector=ucbb; did you mean ucb?" in complaint(capsys)
    assert not Path("outputs").exists()


def test_the_machine_of_the_run_is_named_not_the_one_that_collects():
    told = {"versions": {"fedexp": "1", "torch": "2"}, "device": "arm64 CPU", "instructions": "SVE"}
    assert replay.describe_provenance(told) == "fedexp 1, torch 2, arm64 CPU SVE"
    assert replay.describe_provenance({**told, "instructions": None}) == "fedexp 1, torch 2, arm64 CPU unknown"


@pytest.mark.usefixtures("mine")
def test_damaged_results_are_refused(capsys: pytest.CaptureFixture[str]):
    place = Path("outputs/replay/mine")
    place.mkdir(parents=True)
    (place / results.NAME).write_text("cell,seed\nquick,0\n")
    assert cli.main(["replay", "mine.yml"]) == 2
    assert "results.csv cannot be read as results: its first line must be cell,seed," in complaint(capsys)
    for lines, told in (
        ("quick,zero,a,1,1,d,1,m,c\n", "invalid literal"),
        ("quick,-7,a,1,1,d,1,m,c\n", "line 2 must have a seed >= 0"),
        ("quick,0,a,nan,1,d,1,m,c\n", "a finite value"),
        ("quick,0,a,1,1,d,inf,m,c\n", "a finite value and time"),
        ("quick,0,a,1,1,d,1,m,c\n" * 2, "a cell and seed may have one line"),
    ):
        (place / results.NAME).write_text(",".join(results.COLUMNS) + "\n" + lines)
        assert cli.main(["replay", "mine.yml"]) == 2
        assert told in complaint(capsys)


@pytest.mark.usefixtures("mine")
def test_results_that_are_a_link_are_refused_also_where_it_leads_nowhere(capsys: pytest.CaptureFixture[str]):
    place = Path("outputs/replay/mine")
    place.mkdir(parents=True)
    (place / results.NAME).symlink_to("nowhere")
    assert cli.main(["replay", "mine.yml", "--seeds", "0"]) == 2
    assert "results.csv must be a file of its own, but it is a link; remove it" in complaint(capsys)
    assert (place / results.NAME).is_symlink()
    assert not (place / "README.md").exists()


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("change", ["local.lr=0.5", "seed=7", "model=torch model.factory=builtins:list"])
def test_a_folder_that_holds_another_run_is_not_believed(change: str, capsys: pytest.CaptureFixture[str]):
    """Nor does anything run that it names."""
    job = replay.missing_runs(table.load("mine.yml"), Path("outputs/replay/mine"), "quick", 1)[0]
    place = f"outputs/replay/mine/runs/quick-{job.cell.run}/0"
    words = [word for word in job.cell.words(0) if word.partition("=")[0] not in change]
    assert cli.main(["run", *words, "model=mlp", f"hydra.run.dir={place}"]) == 0
    changes = {"local.lr=0.5": ("local", {"lr": 0.5}), "seed=7": ("seed", 7)}
    key, value = changes.get(change, ("model", {"_target_": "fedexp.parts.model.torch.Torch"}))
    change_config(Path(place), lambda config: config.update({key: value}))
    capsys.readouterr()
    assert cli.main(["replay", "mine.yml", "--cells", "quick", "--seeds", "1"]) == 2
    assert "holds another run than the table asks for" in complaint(capsys)
    assert not (Path("outputs/replay/mine") / results.NAME).exists()


@pytest.mark.usefixtures("mine")
def test_what_a_planted_config_adds_does_not_count(capsys: pytest.CaptureFixture[str]):
    """A tracker changes no result, so that a folder with another one may be gone on with; it is not asked."""
    job = replay.missing_runs(table.load("mine.yml"), Path("outputs/replay/mine"), "quick", 1)[0]
    place = f"outputs/replay/mine/runs/quick-{job.cell.run}/0"
    assert cli.main(["run", *job.cell.words(0), f"hydra.run.dir={place}"]) == 0
    (Path(place) / "summary.json").unlink()
    change_config(Path(place), lambda config: config.update(tracker={"_target_": "nowhere.Found"}))
    assert cli.main(["replay", "mine.yml", "--cells", "quick", "--seeds", "1"]) == 0, capsys.readouterr().err
    assert "nowhere" not in (Path(place) / "config.json").read_text()
    assert len(rows(Path("outputs/replay/mine"))) == 1
