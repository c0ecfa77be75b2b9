"""The example of every group is a part that runs, and what `fedexp new` writes of it runs as it is typed."""

import ast
import runpy
import shlex
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf
from worlds import Tiny, world_of

from fedexp import cli
from fedexp.core.values import State
from fedexp.new import new
from fedexp.new.examples.tracker import OwnTracker
from fedexp.parts import Order, SyncState
from fedexp.parts.tracker.lines import Line
from fedexp.simulation.rounds import run_rounds


@pytest.mark.parametrize("group", new.groups())
def test_two_rounds_of_the_example(tiny: Tiny, group: str):
    option = yaml.safe_load((new.EXAMPLES / f"{group}.yaml").read_text())
    config = OmegaConf.merge(tiny(*new.REQUIRED_OVERRIDES.get(group, ())), {group: None}, {group: option})
    world = world_of(OmegaConf.to_container(config, resolve=True))  # type: ignore[arg-type]
    part = world.exp.part(group)
    assert type(part).__module__ == f"fedexp.new.examples.{group}"
    states: list[State] = [state for state, _, _ in run_rounds(world.exp, world, world.initial_state())]
    assert [state.round for state in states] == [1, 2]


@pytest.mark.parametrize("group", new.groups())
def test_another_name_makes_it_the_users(group: str):
    module, option, test = new.files(group, "my_own").values()
    (own,) = {node.name for node in ast.parse(module).body if isinstance(node, ast.ClassDef)} & {"MyOwn"}
    assert yaml.safe_load(option)["_target_"] == f"mine.my_own.{own}"
    assert option.startswith("# ")
    assert "fedexp.new" not in module + option + test
    ast.parse(test)


def test_what_is_written_runs_as_it_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "attack", "typed", "--into", "own"]) == 0
    typed = capsys.readouterr().out.splitlines()[-1].removeprefix("Try it:  ")
    _, there, _, variable, _, *words = shlex.split(typed)
    assert (there, variable) == ("own", "PYTHONPATH=.")
    monkeypatch.chdir(there)
    monkeypatch.syspath_prepend(Path.cwd())
    runpy.run_path("tests/test_typed.py")["test_two_rounds"](tmp_path)
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
