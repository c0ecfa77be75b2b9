"""A run folder tells whether the modules of one's own that it names have changed since."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fedexp
from fedexp.config.own_modules import module_digests, objection
from fedexp.config.saved_config import read, read_config, refuse_changed_below
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError

NETWORK = """
from torch import nn
from widths_of_mine import WIDTH

def net():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10))
"""
WORDS = ("dataset=digits", "model=torch", "model.factory=net_of_mine:net", "rounds=1", "pictures=false")
NAMED: dict[str, Any] = {"model": {"_target_": "fedexp.x", "factory": "net_of_mine:net"}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a network of one's own, that imports a file beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("net_of_mine", "widths_of_mine"):  # of the test before
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "net_of_mine.py").write_text(NETWORK)
    (tmp_path / "widths_of_mine.py").write_text("WIDTH = 4\n")
    (tmp_path / "unrelated.py").write_text("1\n")
    return tmp_path


def test_a_digest_covers_the_module_and_what_it_imports_from_beside_it(folder: Path):
    first = module_digests(NAMED)
    assert [*first] == ["net_of_mine"]
    (folder / "unrelated.py").write_text("2\n")
    assert module_digests(NAMED) == first
    (folder / "widths_of_mine.py").write_text("WIDTH = 5\n")
    assert module_digests(NAMED) != first


@pytest.mark.parametrize("config", [{"_target_": "fedexp.a"}, {"_target_": "torch.nn.Linear"}, {"_target_": "no.such"}])
def test_what_is_ours_installed_or_nowhere_has_no_digest(config: dict[str, Any]):
    assert module_digests(config) == {}


PACKAGE = {
    "__init__.py": "",
    "part.py": "from .helper import x\nfrom . import deep\n",
    "helper.py": "import beside_of_mine\n",
    "deep/__init__.py": "from package_of_mine.deep.end import y\n",
    "deep/end.py": "",
    "other.py": "",
    "../beside_of_mine.py": "",
}


@pytest.fixture
def package(folder: Path) -> Path:
    """A package of one's own, of which `other.py` is imported by nobody."""
    for name, text in PACKAGE.items():
        file = folder / "package_of_mine" / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.resolve().write_text(text)
    return folder / "package_of_mine"


def test_of_a_package_those_files_count_that_are_imported(package: Path):
    config = {"_target_": "package_of_mine.part.Part", "metrics": ["package_of_mine.other:score"]}
    first = module_digests(config)
    assert sorted(first) == ["package_of_mine.other", "package_of_mine.part"]
    for name in PACKAGE:
        file = (package / name).resolve()
        before = file.read_text()
        file.write_text(f"{before}# changed\n")
        changed = {
            module.rpartition(".")[2] for module, digest in module_digests(config).items() if digest != first[module]
        }
        assert changed == (
            {"other"} if name == "other.py" else {"other", "part"} if name == "__init__.py" else {"part"}
        )
        file.write_text(before)
    (package / "new.py").write_text("1\n")
    assert module_digests(config) == first


def test_a_package_that_changed_is_named_with_its_file(package: Path):
    config = {"_target_": "package_of_mine.part.Part"}
    first = module_digests(config)
    (package / "helper.py").write_text("2\n")
    assert objection(first, config, package.parent, Trust(("package_of_mine",))) is None
    said = str(objection(first, config, package.parent, NO_TRUST))
    assert "another package_of_mine.part than is here now: package_of_mine/part.py or what it imports" in said
    assert said.endswith("add --trust-modules package_of_mine")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "target", ["json./tmp/x.X", "json...X", "torch.nn:Linear", "json.decoder.X", "net_of_mine.../x.X", ".x.X"]
)
def test_a_folder_may_name_anything(target: str):
    assert module_digests({"_target_": target}) == {}


def test_an_import_that_cannot_work_leads_nowhere(folder: Path):
    (folder / "net_of_mine.py").write_text("from . import other\nfrom .. import another\n")
    assert [*module_digests(NAMED)] == ["net_of_mine"]


def _export(run: Path) -> None:
    fedexp.load(run).model()


@pytest.mark.parametrize("use", [read_config, fedexp.resume, _export])
def test_a_run_is_not_used_with_another_network(folder: Path, use: Callable[[Path], Any]):
    fedexp.run(*WORDS, folder="run", quiet=True)
    assert [*read(folder / "run").modules] == ["net_of_mine"]
    use(folder / "run")
    (folder / "net_of_mine.py").write_text(NETWORK.replace("ReLU", "Tanh"))
    with pytest.raises(ConfigError, match=r"run was made with another net_of_mine than is here now"):
        use(folder / "run")
    assert read_config(folder / "run", Trust(("net_of_mine",)))
    with pytest.raises(ConfigError, match="another net_of_mine"):
        refuse_changed_below(folder, NO_TRUST)
    (folder / "run" / "config.json").write_text("{}")
    refuse_changed_below(folder, NO_TRUST)


def test_what_is_imported_of_fedexp_does_not_count_though_it_lies_beside(folder: Path):
    (folder / "fedexp").mkdir()
    (folder / "fedexp/__init__.py").write_text("")
    (folder / "net_of_mine.py").write_text(f"import fedexp\n{NETWORK}")
    first = module_digests(NAMED)
    (folder / "fedexp/__init__.py").write_text("x = 1\n")
    assert module_digests(NAMED) == first


@pytest.mark.usefixtures("folder")
def test_a_part_that_changes_no_result_has_no_digest():
    assert module_digests({"tracker": {"_target_": "net_of_mine.Tracker"}}) == {}
    assert [*module_digests({"loss": {"_target_": "net_of_mine.Loss"}})] == ["net_of_mine"]


AVERAGE = """
from fedexp.parts import Aggregator

class Average(Aggregator):
    def reduce(self, delta, share):
        return (share.to(delta)[:, None] * delta).sum(dim=0){fault}
"""


def test_a_run_without_a_round_goes_on_with_a_mended_module_and_notes_it(folder: Path):
    mine = folder / "average_of_mine.py"
    mine.write_text(AVERAGE.format(fault=" / 0.0 if 1 / 0 else 0"))
    words = ("aggregator._target_=average_of_mine.Average", "rounds=1", "pictures=false")
    with pytest.raises(ZeroDivisionError):
        fedexp.run(*words, folder="run", quiet=True)
    broken = read(folder / "run").modules
    mine.write_text(AVERAGE.format(fault=""))
    sys.modules.pop("average_of_mine")
    fedexp.resume(folder / "run")
    mended = read(folder / "run").modules
    assert mended == module_digests(read(folder / "run").config) != broken
    mine.write_text(AVERAGE.format(fault=" * 2"))
    with pytest.raises(ConfigError, match="another average_of_mine"):
        fedexp.resume(folder / "run")
