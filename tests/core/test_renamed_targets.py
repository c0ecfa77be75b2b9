"""Configs of earlier versions are read with today's names and keys."""

import pytest

from fedexp.core import renamed_targets
from fedexp.core.errors import ConfigError
from fedexp.core.part import find_class


def test_only_targets_are_renewed_in_a_nest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(renamed_targets.RENAMED_TARGETS, "fedexp.before.Stop", "fedexp.now.Stop")
    monkeypatch.setitem(renamed_targets.ADDED_KEYS, "fedexp.now.Stop", {"of": "loss"})
    old = {"_target_": "fedexp.before.Stop", "rounds": 3}
    node = {
        "note": "fedexp.before.Stop",
        "several": [old, None],
        "own": {"_target_": "lab.Mine", "inner": old},
        "x": None,
    }
    new = {"_target_": "fedexp.now.Stop", "rounds": 3, "of": "loss"}
    assert renamed_targets.migrate_config(node) == {
        "note": "fedexp.before.Stop",
        "several": [new, None],
        "x": None,
        "own": {"_target_": "lab.Mine", "inner": new},
    }
    assert renamed_targets.migrate_config({**old, "of": "accuracy"})["of"] == "accuracy"
    assert old["_target_"] == "fedexp.before.Stop", "the nest itself is left alone"


@pytest.mark.parametrize("target", ["fedexp.parts.selector.nowhere.Nowhere", "fedexp.parts.selector.random.Nowhere"])
def test_what_never_was_is_told_in_one_line(target: str):
    with pytest.raises(ConfigError, match=r"selector\._target_ must name a part, but .*owhere"):
        find_class(target, "selector")


@pytest.mark.parametrize("target", [["a"], {"a": 1}, 3, None])
def test_what_is_no_name_is_left_to_those_who_refuse_it(target: object):
    assert renamed_targets.current_target(target) == target
