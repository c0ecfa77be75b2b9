"""What may not be meant is said once a sweep on the console, and in the log of every run."""

from pathlib import Path

import pytest

from fedexp import cli

TINY = (
    *("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6", "rounds=1"),
    *("engine=loop", "engine.workers=1", "pictures=false"),
)
NOTE = "scenario.malicious=3, but nobody attacks: choose an attack"
OTHER = "scenario.malicious=2, but nobody attacks: choose an attack"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_note_that_all_points_share_is_said_once(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["run", "-m", *TINY, "scenario.malicious=3,2", "seed=0,1", "hydra.sweep.dir=many"]) == 0
    told = capsys.readouterr().out
    assert (told.count(NOTE), told.count(OTHER), told.count("round 1/1")) == (1, 1, 0)
    for point, note in enumerate((NOTE, NOTE, OTHER, OTHER)):
        text = Path(f"many/{point}/fedexp.log").read_text()
        assert note in text
        assert "round 1/1" in text
    assert cli.main(["run", "-m", *TINY, "scenario.malicious=3", "seed=0,1", "hydra.sweep.dir=next"]) == 0
    assert capsys.readouterr().out.count(NOTE) == 1  # the next sweep says it again


def test_a_point_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["run", "-m", "experiment=smoke", "seed=0,1", "hydra.sweep.dir=many"]) == 0
    lines = capsys.readouterr().out.splitlines()
    table = next(number for number, line in enumerate(lines) if line.split()[:1] == ["seeds"])
    assert [line.split(",")[0] for line in lines[:table]] == ["1 of 2: seed=0", "2 of 2: seed=1"]


def test_seeds_alone_need_no_ranking(capsys: pytest.CaptureFixture[str]):
    words = ["run", "-m", *TINY[:4], "rounds=2", *TINY[5:]]
    assert cli.main([*words, "seed=0,1", "hydra.sweep.dir=seeds"]) == 0
    told = capsys.readouterr().out
    assert "ranked" not in told
    assert "final test accuracy" in told
    assert cli.main([*words, "seed=0,1", "local.lr=0.1,0.2", "hydra.sweep.dir=rates"]) == 0
    assert "not ranked: no finished run has a validation_loss" in capsys.readouterr().out
