"""What was run here before, and where it lay."""

import json
from pathlib import Path

import pytest

from fedexp.config import trust
from fedexp.core.errors import ConfigError

CONFIG = {"selector": {"_target_": "mine.waiting.Waiting"}}


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(trust, "_note", lambda: tmp_path / "cache" / trust.NAME)
    return tmp_path / "cache" / trust.NAME


def lies_in(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "place", lambda package: f"/{project}/{package}/__init__.py")


def test_every_project_may_have_a_package_of_one_name(note: Path, monkeypatch: pytest.MonkeyPatch):
    for project in ("first", "second"):
        lies_in(project, monkeypatch)
        with pytest.raises(ConfigError, match="was never run here"):
            trust.NOBODY.demand(CONFIG, Path("run"))
        trust.remember(CONFIG)
    for project in ("first", "second"):
        lies_in(project, monkeypatch)
        trust.NOBODY.demand(CONFIG, Path("run"))
    assert json.loads(note.read_text()) == {"mine": ["/first/mine/__init__.py", "/second/mine/__init__.py"]}


def test_what_older_versions_noted_holds(note: Path, monkeypatch: pytest.MonkeyPatch):
    note.parent.mkdir()
    note.write_text(json.dumps({"mine": "/first/mine/__init__.py"}))
    lies_in("first", monkeypatch)
    trust.NOBODY.demand(CONFIG, Path("run"))


@pytest.mark.parametrize("content", ["[1]", "{", '{"mine": 3}', "null"])
def test_a_damaged_note_knows_nothing(note: Path, monkeypatch: pytest.MonkeyPatch, content: str):
    note.parent.mkdir()
    note.write_text(content)
    lies_in("first", monkeypatch)
    with pytest.raises(ConfigError, match="was never run here"):
        trust.NOBODY.demand(CONFIG, Path("run"))
    trust.remember(CONFIG)
    trust.NOBODY.demand(CONFIG, Path("run"))


@pytest.mark.usefixtures("note")
def test_options_of_a_folder(tmp_path: Path):
    with pytest.raises(ConfigError, match="which was never used here"):
        trust.NOBODY.options(tmp_path / "conf", Path("sweep"))
    trust.remember(config_dir=tmp_path / "conf")
    assert trust.NOBODY.options(tmp_path / "conf", Path("sweep")) == tmp_path / "conf"
