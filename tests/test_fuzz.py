"""A few inputs of every kind of `scripts/fuzz/all.py`: each ends well, or with one line and the exit code 1 or 2."""

import ast
import time
from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path

import pytest

from fedexp import cli
from fedexp.run.run import run
from scripts.fuzz import all as fuzz
from scripts.fuzz import modules
from scripts.fuzz.judged import Input, shortcoming, without_warnings
from scripts.fuzz.modules import differing
from scripts.fuzz.users_files import whole_or_nothing
from tests.composing import tiny

FEW = {"keys": 4, "answers": 4, "sweeps": 1}  # and two of every other kind


@pytest.fixture(scope="module", autouse=True)
def _ready(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What copies would import is imported here."""
    run(tiny(), tmp_path_factory.mktemp("first"))


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_none_of_a_few_falls_short(kind: str):
    few = FEW.get(kind, 2)
    count, short = fuzz.tried(kind, few / len(fuzz.inputs(kind)), seed=14)
    assert count == few
    assert short == {}


def test_parts_make_up_all_of_them():
    parts = [fuzz.drawn("pairs", 1.0, 0, "codec=", fuzz.part_of(f"{number}/3")) for number in (1, 2, 3)]
    names = [each.name for part in parts for each in part]
    assert sorted(names) == sorted(each.name for each in fuzz.drawn("pairs", 1.0, 0, "codec="))
    assert len(names) == len(set(names)) > 100


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b"])
def test_what_is_no_part(text: str):
    with pytest.raises(ArgumentTypeError, match="must be K/N"):
        fuzz.part_of(text)


def test_there_are_thousands():
    assert sum(len(fuzz.inputs(kind)) for kind in fuzz.KINDS) > 20_000


def says(*lines: str) -> int:
    for line in lines:
        cli.sys.stderr.write(f"{line}\n")
    return 0


def left_behind() -> int:
    Path("run").mkdir()
    cli.print_error("no")
    return 2


SHORT = {
    "a traceback": (lambda: 1 // 0, "exit code 70"),
    "two lines": (lambda: says("a", "b") or 1, "exit code 1 with 2 lines on stderr: a / b"),
    "a line where all went well": (lambda: says("a"), "exit code 0 with 1 lines"),
    "another exit code": (lambda: says("a") or 3, "exit code 3"),
    "a folder left behind": (left_behind, "refused, but left a folder"),
    "a hang": (lambda: time.sleep(60) or 0, "still at it after 0.2 s"),
    "a signal": (lambda: cli.os.kill(cli.os.getpid(), 9) or 0, "exit code -9"),
}


@pytest.mark.parametrize("name", SHORT)
def test_what_falls_short_is_found(name: str):
    act, told = SHORT[name]
    assert told in shortcoming(Input(name, act, limit_s=0.2 if name == "a hang" else 30))


def test_what_does_well_is_not_complained_of():
    assert shortcoming(Input("fine", lambda: 0)) == ""
    assert shortcoming(Input("refused", lambda: cli.main(["nothing"]))) == ""


def test_warnings_of_the_users_code_are_no_complaints():
    lines = ("x.py:3: UserWarning: mine", "  warn()", "fedexp: net must be a module")
    given = Input("warned", lambda: says(*lines) or 2, warns=True)
    assert shortcoming(given) == ""
    assert "exit code 2 with 3 lines" in shortcoming(replace(given, warns=False))


def test_what_a_users_del_raises_is_said_by_python():
    said = ["Exception ignored in: <function Net.__del__ at 0x1>", "Traceback (most recent call last):", "  a", "b: c"]
    assert without_warnings([*said, *said, "fedexp: x"]) == ["fedexp: x"]
    assert without_warnings([*said, said[1]]) == [said[1]]


def test_what_is_left_beside_the_run_falls_short(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    assert whole_or_nothing(tmp_path) == ""
    (tmp_path / "executed").touch()
    assert whole_or_nothing(tmp_path) == "left executed"


def test_a_run_without_its_rounds_falls_short(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.csv").write_text("round\n1\n")
    assert "made 1 of 2 rounds" in whole_or_nothing(tmp_path)


def test_measures_that_depend_on_the_workers_fall_short(tmp_path: Path):
    for name, loss in (("one", 0.5), ("near", 0.50001), ("far", 0.51)):
        (tmp_path / name).write_text(f"round,test_loss,test_accuracy\n1,{loss},0.25\n")
    assert differing(tmp_path / "one", tmp_path / "near") == ""
    assert (
        differing(tmp_path / "one", tmp_path / "far") == "test_loss of one worker is 0.5, of two in other pieces 0.51"
    )


def test_every_network_is_python_unless_it_is_about_that():
    short = [name for name, piece in modules.pieces().items() if not is_python(modules.text(piece))]
    assert short == [f"a factory: {what}" for what in ("a syntax error", "tabs and blanks", "a NUL")]


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def test_files_are_the_same_in_every_process(tmp_path: Path):
    for kind in ("tables", "weights"):
        each = next(found for found in fuzz.inputs(kind) if "damage 3" in found.name)
        for name in ("one", "two"):
            (tmp_path / kind / name).mkdir(parents=True)
            each.prepare(tmp_path / kind / name)
        one, two = (sorted((tmp_path / kind / name / "mine").iterdir()) for name in ("one", "two"))
        assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
