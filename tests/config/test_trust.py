"""What was run here before, and where it lay."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from fedexp.config import trust
from fedexp.core.errors import ConfigError

PYTHONS = "os is a module of Python itself, which no experiment needs: do not go on with this folder"
CONFIG = {"selector": {"_target_": "nobody_elses.waiting.Waiting"}}


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(trust, "_trust_file", lambda: tmp_path / "cache" / trust.NAME)
    return tmp_path / "cache" / trust.NAME


def lies_in(project: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Makes a package of that project the one that is imported."""
    package = tmp_path / project / "nobody_elses" / "__init__.py"
    package.parent.mkdir(parents=True, exist_ok=True)
    package.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / project)])
    return package


def test_every_project_may_have_a_package_of_one_name(note: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for project in ("first", "second"):
        lies_in(project, monkeypatch, tmp_path)
        with pytest.raises(ConfigError, match="was never run here"):
            trust.NO_TRUST.refuse_untrusted(CONFIG, Path("run"))
        trust.remember_modules(CONFIG)
    for project in ("first", "second"):
        lies_in(project, monkeypatch, tmp_path)
        trust.NO_TRUST.refuse_untrusted(CONFIG, Path("run"))
    both = [str(tmp_path / project / "nobody_elses" / "__init__.py") for project in ("first", "second")]
    assert json.loads(note.read_text()) == {"nobody_elses": both}


@pytest.mark.usefixtures("note")
def test_a_package_in_parts_is_known_where_all_of_them_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Without __init__.py every folder of that name on the path is the package, a stranger's too."""
    for project in ("own", "strange"):
        (tmp_path / project / "nobody_elses").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "own")])
    trust.remember_modules(CONFIG)
    trust.NO_TRUST.refuse_untrusted(CONFIG, Path("run"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "own"), str(tmp_path / "strange")])
    with pytest.raises(ConfigError, match="was never run here"):
        trust.NO_TRUST.refuse_untrusted(CONFIG, Path("run"))


def test_a_place_that_is_gone_is_forgotten(note: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    lies_in("first", monkeypatch, tmp_path)
    trust.remember_modules(CONFIG)
    shutil.rmtree(tmp_path / "first")
    second = lies_in("second", monkeypatch, tmp_path)
    trust.remember_modules(CONFIG)
    assert json.loads(note.read_text()) == {"nobody_elses": [str(second)]}


@pytest.mark.parametrize("content", ["[1]", "{", '{"nobody_elses": 3}', "null"])
def test_a_damaged_note_knows_nothing(note: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str):
    note.parent.mkdir()
    note.write_text(content)
    lies_in("first", monkeypatch, tmp_path)
    with pytest.raises(ConfigError, match="was never run here"):
        trust.NO_TRUST.refuse_untrusted(CONFIG, Path("run"))
    trust.remember_modules(CONFIG)
    trust.NO_TRUST.refuse_untrusted(CONFIG, Path("run"))


@pytest.mark.parametrize("address", ["http://host:5000", "sqlite:////tmp/x.db", "databricks"])
def test_an_address_is_known_once_something_was_sent_there(note: Path, address: str, monkeypatch: pytest.MonkeyPatch):
    assert not trust.NO_TRUST.sends_to(address)
    assert trust.Trust(composed=True).sends_to(address)
    assert trust.Trust(addresses=(address,)).sends_to(address)
    with monkeypatch.context() as environment:
        environment.setenv("MLFLOW_TRACKING_URI", address.replace("://h", "://me:secret@h"))
        assert trust.NO_TRUST.sends_to(address)
    trust.remember_address(address)
    assert trust.NO_TRUST.sends_to(address)
    trust.remember_modules({"tracker": {"_target_": "fedexp.parts.tracker.mlflow.MLflow", "uri": "http://other"}})
    assert json.loads(note.read_text()) == {trust.ADDRESSES: [address]}


@pytest.mark.usefixtures("note")
def test_options_of_a_folder(tmp_path: Path):
    (tmp_path / "conf").mkdir()
    with pytest.raises(ConfigError, match="which was never used here"):
        trust.NO_TRUST.options(tmp_path / "conf", Path("sweep"))
    trust.remember_modules(config_dir=tmp_path / "conf")
    assert trust.NO_TRUST.options(tmp_path / "conf", Path("sweep")) == tmp_path / "conf"


def made_by(factory: str) -> dict[str, Any]:
    return {"model": {"_target_": "fedexp.parts.model.torch.Torch", "factory": factory, "arguments": {"width": 3}}}


@pytest.mark.parametrize("factory", ["nobody_elses.nets:make", "os:system", "fedexp.files.atomic:write_atomically"])
@pytest.mark.usefixtures("note")
def test_a_factory_is_known_by_its_own_name(factory: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Another function of the same package, of fedexp too, may do anything with the arguments that a folder gives."""
    lies_in("first", monkeypatch, tmp_path)
    trust.remember_modules(CONFIG)
    trust.remember_modules(made_by(factory.replace(":", ":an")))
    package = factory.partition(".")[0].partition(":")[0]
    advice = PYTHONS if package == "os" else f".* add --trust-modules {package}"
    said = f"^run names {factory}, which was never run here; {advice}$"
    with pytest.raises(ConfigError, match=said):
        trust.NO_TRUST.refuse_untrusted(made_by(factory), Path("run"))
    trust.Trust(modules=(package,)).refuse_untrusted(made_by(factory), Path("run"))
    trust.Trust(composed=True).refuse_untrusted(made_by(factory), Path("run"))
    trust.remember_modules(made_by(factory))
    trust.NO_TRUST.refuse_untrusted(made_by(factory), Path("run"))


@pytest.mark.usefixtures("note")
def test_a_factory_that_lies_elsewhere_is_a_stranger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    lies_in("first", monkeypatch, tmp_path)
    trust.remember_modules(made_by("nobody_elses.nets:make"))
    trust.NO_TRUST.refuse_untrusted(made_by("nobody_elses.nets:make"), Path("run"))
    lies_in("second", monkeypatch, tmp_path)
    with pytest.raises(ConfigError, match="was never run here"):
        trust.NO_TRUST.refuse_untrusted(made_by("nobody_elses.nets:make"), Path("run"))


@pytest.mark.usefixtures("note")
def test_a_metric_is_known_by_its_own_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Names of ours are no functions; any list of metrics counts, wherever it stands."""
    lies_in("first", monkeypatch, tmp_path)
    trust.remember_modules(CONFIG)
    config = {"evaluation": {"_target_": "fedexp.scoring.evaluation.Evaluation", "metrics": ["auroc", "os:system"]}}
    with pytest.raises(ConfigError, match=rf"^run names os:system, which was never run here; {PYTHONS}$"):
        trust.NO_TRUST.refuse_untrusted(config, Path("run"))
    trust.Trust(modules=("os",)).refuse_untrusted(config, Path("run"))
    trust.remember_modules(config)
    trust.NO_TRUST.refuse_untrusted(config, Path("run"))
    with pytest.raises(ConfigError, match=r"^run names os:popen, which was never run here"):
        trust.NO_TRUST.refuse_untrusted({"evaluation": {"metrics": ("os:popen",)}}, Path("run"))


@pytest.mark.usefixtures("note")
def test_a_package_that_offers_parts_does_not_offer_all_its_functions(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trust, "_is_offered", lambda package: package == "numpy")
    trust.NO_TRUST.refuse_untrusted({"selector": {"_target_": "numpy.Waiting"}}, Path("run"))
    with pytest.raises(ConfigError, match="run names numpy:load, which was never run here"):
        trust.NO_TRUST.refuse_untrusted(made_by("numpy:load"), Path("run"))


@pytest.mark.usefixtures("note")
def test_a_package_of_the_working_folder_is_known_there_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for project in ("own", "strange"):
        lies_in(project, monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.chdir(tmp_path / "own")
    trust.remember_modules(CONFIG)
    trust.NO_TRUST.refuse_untrusted(CONFIG, Path("run"))
    monkeypatch.chdir(tmp_path / "strange")
    with pytest.raises(ConfigError, match="was never run here"):
        trust.NO_TRUST.refuse_untrusted(CONFIG, Path("run"))
    assert sys.path == []
