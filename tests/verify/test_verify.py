"""A run folder that tells the truth, and folders that were altered by hand: the round is named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fedexp.cli import main

WORDS = (
    "dataset=synthetic",
    "dataset.train_size=300",
    "dataset.test_size=100",
    "scenario.clients=6",
    "scenario.participants=3",
    "server_optimizer=momentum",
    "evaluation.every=2",
    "rounds=9",
    "keep_states=4",
    "engine=loop",
    "engine.workers=1",
    "pictures=false",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert main(["run", *WORDS, f"hydra.run.dir={folder}"]) == 0
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that a test may alter, seen from the folder that holds it."""
    shutil.copytree(whole, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return Path("run")


@pytest.fixture
def verified(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Verifies a folder: exit code, what was said and the complaint."""

    def verify(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["verify", "run", *words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return verify


def alter(path: Path, number: int, change: Callable[[list[str]], list[str]]) -> None:
    """Changes the cells of one round's line."""
    lines = [line.split(",") for line in path.read_text().splitlines()]
    lines = [change(cells) if cells[0] == str(number) else cells for cells in lines]
    path.write_text("".join(",".join(cells) + "\n" for cells in lines))


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3000])


def test_the_states_that_stay_and_a_digest_of_every_round(whole: Path):
    assert sorted(path.name for path in (whole / "states").iterdir()) == ["000004.pt", "000008.pt"]
    lines = (whole / "digests.csv").read_text().splitlines()
    assert lines[0] == "round,digest"
    assert [line.split(",")[0] for line in lines[1:]] == [str(number) for number in range(1, 10)]
    assert len({line.split(",")[1] for line in lines}) == 10


@pytest.mark.usefixtures("folder")
def test_an_honest_folder_is_equal_and_stays_as_it_is(whole: Path, verified: Callable):
    code, told, complaint = verified()
    assert (code, complaint) == (0, "")
    assert "run: 9 rounds, of which 3 are computed again\n" in told
    assert "from the beginning: round 1\nfrom states/000004.pt: round 5\n" in told
    assert "compared bit by bit (engine loop" in told
    assert [line for line in told.splitlines() if line.startswith("round")] == [f"round {n}  equal" for n in (1, 5, 9)]
    files = {path.relative_to("run"): path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    assert files == {path.relative_to(whole): path.read_bytes() for path in whole.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("folder")
def test_every_round_can_be_asked_for(verified: Callable):
    code, told, _ = verified("--rounds", "9", "--seed=3")
    assert code == 0
    assert told.count("  equal\n") == 9


def test_an_altered_metric_is_named_with_its_round(folder: Path, verified: Callable):
    alter(folder / "metrics.csv", 6, lambda cells: [cells[0], "0.125", *cells[2:]])
    code, told, complaint = verified("--rounds", "9")
    assert code == 1
    assert "round 5  equal\nround 6  DIFFERS\nround 9  equal\n" in told  # 7 and 8 follow from 6 and are not played
    assert complaint.startswith("fedexp: round 6 differs: test_loss is 0.125 in metrics.csv, ")


def test_an_altered_digest_is_named_with_its_round(folder: Path, verified: Callable):
    alter(folder / "digests.csv", 5, lambda cells: [cells[0], "0" * 32])
    code, _, complaint = verified()
    assert code == 1
    assert complaint.startswith(f"fedexp: round 5 differs: the models' digest is {'0' * 32} in digests.csv, ")
    assert complaint.endswith(" now (metrics.csv agrees)\n")


def test_a_missing_line_is_named(folder: Path, verified: Callable):
    table = folder / "metrics.csv"
    table.write_text("".join(line for line in table.read_text().splitlines(True) if not line.startswith("5,")))
    code, _, complaint = verified()
    assert (code, complaint) == (1, "fedexp: round 5 differs: it has no line in metrics.csv\n")


def test_a_changed_state_is_named_with_its_round(folder: Path, verified: Callable):
    path = folder / "states" / "000004.pt"
    content = torch.load(path, weights_only=True)
    content["models"][0][0][7] += 0.5
    torch.save(content, path)
    code, told, complaint = verified()
    assert code == 1
    assert "states/000004.pt  DIFFERS\n" in told
    assert complaint.startswith("fedexp: round 4 differs: the models in states/000004.pt have the digest ")
    assert complaint.endswith("(and 1 more)\n")  # round 5, which was played from it


def test_a_changed_memory_shows_in_the_next_round(folder: Path, verified: Callable):
    path = folder / "states" / "000004.pt"
    content = torch.load(path, weights_only=True)
    content["memory"]["server_optimizer"]["0"]["velocity"] *= 2
    torch.save(content, path)
    code, _, complaint = verified()
    assert code == 1
    assert complaint.startswith("fedexp: round 5 differs: ")


def test_a_damaged_state_is_said_and_the_rest_verified(folder: Path, verified: Callable):
    damage(folder / "states" / "000004.pt")
    code, told, complaint = verified()
    assert (code, complaint) == (1, "fedexp: run/states/000004.pt is damaged\n")
    assert told.count("  equal\n") >= 3


def test_without_digests_the_metrics_are_compared(folder: Path, verified: Callable):
    (folder / "digests.csv").unlink()
    code, told, _ = verified()
    assert code == 0
    assert "metrics (the folder has no digests.csv) are compared bit by bit" in told
    alter(folder / "metrics.csv", 1, lambda cells: [*cells[:5], "2.5", *cells[6:]])
    code, _, complaint = verified()
    assert code == 1
    assert complaint.startswith("fedexp: round 1 differs: train_loss is 2.5 in metrics.csv, ")


def test_without_states_a_replay_begins_at_the_beginning(folder: Path, verified: Callable):
    for path in [*(folder / "states").iterdir(), *folder.glob("state*.pt")]:
        path.unlink()
    code, told, _ = verified("--rounds", "4")
    assert code == 0
    assert "compared bit by bit" in told
    assert told.splitlines()[1].startswith("from the beginning: rounds 1, ")


def test_another_version_is_compared_within_rounding(folder: Path, verified: Callable):
    for path in [*(folder / "states").iterdir(), *folder.glob("state*.pt")]:
        path.unlink()
    summary = json.loads((folder / "summary.json").read_text())
    summary["versions"]["torch"] = "1.0"
    (folder / "summary.json").write_text(json.dumps(summary))
    alter(folder / "digests.csv", 1, lambda cells: [cells[0], "0" * 32])
    code, told, _ = verified("--rounds", "1")
    assert code == 0
    assert "metrics are compared within 0.02, since bits may differ: torch 1.0 then, " in told
    alter(folder / "metrics.csv", 1, lambda cells: [*cells[:5], "2.5", *cells[6:]])
    assert verified("--rounds", "1")[0] == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "verify needs one run folder, got 0; e.g. fedexp verify outputs/latest"),
        (("nowhere",), "there is no folder nowhere; fedexp verify needs a run folder, e.g. outputs/latest"),
        (("run", "--rounds", "0"), "--rounds must be an integer >= 1, got 0"),
        (("run", "--seed"), "--seed must be an integer >= 0, got none"),
        (("run", "--round=2"), "unknown flag --round=2; verify knows --rounds K and --seed S"),
        (("run/states",), "run/states is no run folder: it has no .hydra/config.yaml"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_verified(words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]):
    assert main(["verify", *words]) == 2
    assert capsys.readouterr().err == f"fedexp: {complaint}\n"


def test_a_run_without_a_finished_round(folder: Path, verified: Callable):
    (folder / "metrics.csv").unlink()
    code, _, complaint = verified()
    assert code == 2
    assert complaint == "fedexp: run has no finished round in metrics.csv; there is nothing to verify\n"
