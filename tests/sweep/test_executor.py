"""A sweep that runs for good ends with its table; what an experiment sweeps gives way to the command line."""

from pathlib import Path

import pandas as pd
import pytest

from fedexp import cli
from fedexp.config.location import conf_dir

TINY = (
    *("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6"),
    *("scenario.participants=3", "rounds=2", "local.epochs=1", "engine=loop", "engine.workers=1", "pictures=false"),
)
ALPHAS = ["selector.alpha1", "selector.alpha2", "selector.alpha3"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sweep(*words: str) -> tuple[int, pd.DataFrame]:
    """The exit code and the table of a sweep in the folder `many`."""
    code = cli.main(["run", "-m", *TINY, "hydra.sweep.dir=many", *words])
    return code, pd.read_csv("many/sweep.csv")


def test_any_keys_are_ranked_by_validation_loss(capsys: pytest.CaptureFixture[str]):
    code, table = sweep("evaluation.validation=true", "local.lr=0.1,0.0001", "seed=0,1")
    assert code == 0
    assert table["local.lr"].tolist() == [0.1, 0.0001]
    assert table["rank"].tolist() == [1, 2]
    assert table["seeds"].tolist() == [2, 2]
    areas = [pd.read_csv(f"many/{point}/metrics.csv")["validation_loss"].mean() for point in (0, 1)]  # trapezoids
    assert table["validation_loss AUC mean"].tolist()[0] == pytest.approx(sum(areas) / 2)
    assert Path("many/sweep.png").read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    assert said.rstrip().endswith(f"sweep  {Path('many/sweep.csv')}")
    assert not [name for name in table if name.startswith("test")], "test data rank only when asked"


def test_without_validation_data_nothing_is_ranked(capsys: pytest.CaptureFixture[str]):
    code, table = sweep("local.lr=0.1,0.2")
    assert code == 0
    assert "rank" not in table
    assert "set evaluation.validation=true" in capsys.readouterr().out
    assert not Path("many/sweep.png").exists()


def test_test_data_rank_when_asked():
    _, table = sweep("local.lr=0.0001,0.1", "evaluation.rank_on=test")
    assert table["local.lr"].tolist() == [0.1, 0.0001]


def test_an_experiments_grid_and_the_keys_that_replace_it():
    code, table = sweep("experiment=afl_grid", "selector.alpha1=0.9", "selector.alpha3=0.2")
    assert code == 0
    assert set(table["selector.alpha2"]) == {0.01, 0.03}
    assert len(table) == 2
    assert not {"selector.alpha1", "selector.alpha3"} & set(table), "one value is no axis"


def test_the_grid_is_the_thesis_18_points():
    text = (conf_dir() / "experiment" / "afl_grid.yaml").read_text()
    values = [text.partition(f"{name}: ")[2].partition("\n")[0] for name in ALPHAS]
    assert values == ["0.5,0.75,0.85", "0.01,0.03", "0.1,0.3,0.5"]
