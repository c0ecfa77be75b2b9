"""What `fedexp new` writes for any group is a part that runs, as it is typed."""

import ast
import inspect
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from fedexp import cli
from fedexp.config.roles import ROLES
from fedexp.new import new
from fedexp.new.examples.tracker import OwnTracker
from fedexp.parts import Order, SyncState
from fedexp.parts.tracker.lines import Line

DRAWING = """

def reduce(self, *words):
    import numpy as np

    return self.exact(*words) * float(np.random.default_rng().normal())


Drawing.exact, Drawing.reduce = Drawing.reduce, reduce
"""


@pytest.mark.parametrize("group", new.groups())
def test_two_rounds_of_what_is_written(group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    *_, test = new.write(group, f"own_{group}", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    runpy.run_path(str(test))["test_two_rounds"](tmp_path)


@pytest.mark.parametrize("group", ["selector", "aggregator", "attack", "local", "model", "tracker"])
def test_what_is_written_owes_what_every_part_owes(group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    *_, test = new.write(group, f"owing_{group}", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    runpy.run_path(str(test))["test_same_bytes_again_with_two_workers_and_after_a_break"](tmp_path)


def test_a_part_that_draws_by_itself_fails_its_own_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module, _, test = new.write("aggregator", "drawing", tmp_path)
    module.write_text(module.read_text() + DRAWING)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AssertionError, match=r"draw by ctx\.rng alone"):
        runpy.run_path(str(test))["test_same_bytes_again_with_two_workers_and_after_a_break"](tmp_path)


@pytest.mark.parametrize("group", new.groups())
def test_another_name_makes_it_the_users(group: str):
    module, option, test = new.files(group, "my_own").values()
    tree = ast.parse(module)
    assert "MyOwn" in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert yaml.safe_load(option)["_target_"] == "mine.my_own.MyOwn"
    assert option.startswith("# ")
    assert "fedexp.new" not in module + option + test
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert {name for name in imported if name.startswith("fedexp")} == {"fedexp.parts"}
    former = yaml.safe_load(new.example_option(group).read_text())["_target_"].rpartition(".")[2]
    assert former not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert max(map(len, module.splitlines())) <= new.LINE
    contract = next(role for role in ROLES if role.name == group).kind
    for name, method in inspect.getmembers(contract, inspect.isfunction):
        if method.__module__ == contract.__module__ and method.__doc__ and not name.startswith("_"):
            assert f"* `{name}(" in str(ast.get_docstring(tree))


def test_what_is_written_runs_as_it_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "attack", "typed", "--into", "own"]) == 0
    typed = capsys.readouterr().out.splitlines()[-1].removeprefix("Try it:  ")
    _, there, _, _, *words = shlex.split(typed)
    monkeypatch.chdir(there)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # of another test's folder
    assert cli.main([*words, "pictures=false"]) == 0
    assert "final accuracy" in capsys.readouterr().out


def test_the_tracker_sends_every_round_once(tmp_path: Path):
    order, tracker = Order(tmp_path), OwnTracker()
    for known, lines in ((0, [Line(1, {"round": 1.0, "loss": 2.0}), Line(2, {"round": 2.0})]), (2, [])):
        with (tmp_path / "rounds.jsonl").open("a") as file:
            file.write('{"rou')  # a sender was killed
        receiver = tracker.open(order, SyncState())
        assert receiver.begin().round == known
        receiver.send(lines)
    assert (tmp_path / "rounds.jsonl").read_text() == '{"round": 1.0, "loss": 2.0}\n{"round": 2.0}\n'
