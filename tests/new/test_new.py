"""`fedexp new`: three files, all or none; what cannot be is one line, and nothing is overwritten."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import complaint, python

from fedexp import cli
from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.new import new

Tree = Callable[[Path], list[str]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_files_and_the_command_are_told(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["new", "selector", "longest_waiting"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "mine/longest_waiting.py",
        "conf/selector/longest_waiting.yaml",
        "tests/test_longest_waiting.py",
        "",
        "Try it:  fedexp run --config-dir conf selector=longest_waiting rounds=3",
    ]
    assert "class LongestWaiting(Selector):" in Path("mine/longest_waiting.py").read_text()
    option = Path("conf/selector/longest_waiting.yaml").read_text()
    assert "\n_target_: mine.longest_waiting.LongestWaiting\n" in option


@pytest.mark.parametrize("words", [["--into", "my parts"], ["--into=my parts"]])
def test_another_folder(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert cli.main(["new", *words, "attack", "spite"]) == 0
    *paths, _, trial = capsys.readouterr().out.splitlines()
    assert all(Path(path).is_file() for path in paths)
    assert trial.startswith("Try it:  cd 'my parts' && fedexp run --config-dir conf attack=spite ")
    assert {path.name for path in Path("my parts").iterdir()} == {"mine", "conf", "tests"}


def test_several_parts_lie_side_by_side():
    assert cli.main(["new", "selector", "waiting"]) == 0
    assert cli.main(["new", "model", "narrow"]) == 0
    assert {path.name for path in Path("mine").iterdir()} == {"waiting.py", "narrow.py"}


@pytest.mark.parametrize("taken", ["mine/waiting.py", "conf/selector/waiting.yaml", "tests/test_waiting.py"])
def test_nothing_is_overwritten(taken: str, tmp_path: Path, tree: Tree, capsys: pytest.CaptureFixture[str]):
    Path(taken).parent.mkdir(parents=True)
    Path(taken).write_text("precious")
    before = tree(tmp_path)
    assert cli.main(["new", "selector", "waiting"]) == 2
    said = f"fedexp: {taken} is there already, and nothing is overwritten; choose another name or --into"
    assert complaint(capsys) == said
    assert tree(tmp_path) == before
    assert Path(taken).read_text() == "precious"


def test_a_link_to_nowhere_is_something_too(capsys: pytest.CaptureFixture[str]):
    Path("mine").mkdir()
    Path("mine/waiting.py").symlink_to("elsewhere.py")
    assert cli.main(["new", "selector", "waiting"]) == 2
    assert complaint(capsys).startswith("fedexp: mine/waiting.py is there already")


def test_a_file_where_a_folder_must_be(tmp_path: Path, tree: Tree, capsys: pytest.CaptureFixture[str]):
    Path("tests").touch()
    assert cli.main(["new", "selector", "waiting"]) == 2
    assert complaint(capsys).startswith("fedexp: tests must be a folder to write tests/test_waiting.py in; ")
    assert tree(tmp_path) == ["tests"]


def test_what_cannot_be_written_leaves_nothing(
    tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    written = Path.write_text

    def full(path: Path, *given: str, **named: str) -> int:
        if "test_waiting" in path.name:
            raise OSError(28, os.strerror(28))
        return written(path, *given, **named)

    monkeypatch.setattr(Path, "write_text", full)
    assert cli.main(["new", "selector", "waiting", "--into", "own"]) == 1
    assert "No space left" in complaint(capsys)
    assert tree(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "new needs a group and a name, got none; e.g. fedexp new selector waiting"),
        (["selector"], "new needs a group and a name, got selector; e.g. fedexp new selector waiting"),
        (["selector", "a", "b"], "new needs a group and a name, got selector a b; e.g. fedexp new selector waiting"),
        (["selektor", "a"], "unknown group selektor; did you mean selector?"),
        (["selector", "a", "--force"], "unknown flag --force; known: --help, --into"),
        (["selector", "a", "--into"], "--into must be a folder, got none"),
        (["engine", "a"], "engine cannot be an own part: it computes what the parts say and must not change it; "),
        (
            ["experiment", "a"],
            "experiment cannot be an own part: it chooses options of other groups and needs no code; ",
        ),
        (["hydra/launcher", "a"], "hydra/launcher cannot be an own part: it is Hydra's own, "),
        (["stop", "target"], "stop=target is an option already; choose another name than patience, "),
        (["stop", "stop"], "the class of stop would be Stop, which its module needs for another; choose a longer name"),
        *(
            (["stop", name], "an own part needs a name of letters, digits and _ that Python and the command line can ")
            for name in ("", "3x", "a-b", "a.b", "../a", "_a", "lambda", "None", "none", "null", "inf", "é", "a b")
        ),
    ],
)
def test_what_cannot_be_is_one_line(
    words: list[str], said: str, tmp_path: Path, tree: Tree, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["new", *words]) == 2
    assert complaint(capsys).startswith(f"fedexp: {said}")
    assert tree(tmp_path) == []


def test_every_group_is_an_example_or_refused_with_a_reason():
    known = set(catalog.groups(conf_dir()))
    assert set(new.groups()) | (known & set(new.NO_PARTS)) == known
    assert not set(new.groups()) & set(new.NO_PARTS)
    assert {path.stem for path in new.EXAMPLES.glob("*.py")} - {"__init__"} == set(new.groups()) - set(new.COPIES)


def test_nobody_waits_for_it():
    heavy = "import sys; from fedexp.cli import main; main(['new', 'model', 'mine']); print('torch' in sys.modules)"
    assert python("-c", heavy).stdout.splitlines()[-1] == "False"
