"""A run on a user's own file, verified and exported from another folder than the one it was started from."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from fedexp import load
from fedexp.cli import main
from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.part import find_class
from fedexp.verify.own_files import with_own_files

WORDS = ("dataset=table", "dataset.file=rows.csv", "dataset.target=sick", "scenario.clients=3", "rounds=2")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was started in `home`, seen from `away`."""
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    lines = [f"{number % 7},{number % 5},{int(number % 7 > 3)}" for number in range(120)]
    (home / "rows.csv").write_text("\n".join(["age,pressure,sick", *lines, ""]))
    monkeypatch.chdir(home)
    assert main(["run", *WORDS, "pictures=false", "hydra.run.dir=run"]) == 0
    monkeypatch.chdir(away)
    return Path("../home/run")


def test_its_file_is_found_where_it_was_started(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["verify", str(run)]) == 0
    assert main(["export", str(run), "--to", "model"]) == 0
    capsys.readouterr()
    (run.parent / "rows.csv").rename("rows.csv")
    assert main(["verify", str(run)]) == 0, "the file was moved here"
    Path("rows.csv").unlink()
    capsys.readouterr()
    assert main(["verify", str(run)]) == 2
    assert "there is no rows.csv here or in" in capsys.readouterr().err


def test_another_file_of_its_name_that_lies_here_is_not_taken(run: Path, capsys: pytest.CaptureFixture[str]):
    Path("rows.csv").write_text("age,pressure,sick\n" + "1,2,0\n3,4,1\n" * 60)
    assert main(["verify", str(run)]) == 0
    (run.parent / "rows.csv").unlink()
    assert main(["verify", str(run)]) == 1
    assert "data_sha256" in capsys.readouterr().out


def test_the_encoder_of_a_loaded_run_finds_it_too(run: Path):
    done = load(run)
    assert [column.name for column in done.encoder.columns] == ["age", "pressure"]
    assert done.model() is not None


@dataclass
class Nothing:
    """What an option without a class takes."""


def path_options() -> Iterator[tuple[str, str]]:
    """Group and name of each option that takes a path of the user's, in any part."""
    conf = conf_dir()
    for group in catalog.groups(conf):
        for option in catalog.options(conf, group):
            target = catalog.load(conf / group / f"{option}.yaml").get("_target_")
            kind: Any = find_class(target, group) if target else Nothing
            for field in fields(kind):
                if "Path" in str(field.type) and field.name != "directory":
                    yield group, field.name


@pytest.mark.parametrize(("group", "name"), sorted(set(path_options())))
def test_every_option_that_takes_a_path_is_looked_for_where_the_run_started(group: str, name: str, tmp_path: Path):
    (tmp_path / "run" / ".hydra").mkdir(parents=True)
    (tmp_path / "mine.csv").touch()
    (tmp_path / "run" / ".hydra" / "hydra.yaml").write_text(f"hydra: {{runtime: {{cwd: {tmp_path}}}}}\n")
    found = with_own_files({group: {name: "mine.csv", "other": "mine.csv"}}, tmp_path / "run")
    assert found == {group: {name: str(tmp_path / "mine.csv"), "other": "mine.csv"}}
