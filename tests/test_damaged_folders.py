"""Damage to a run's folder: every command goes on with what is whole, or ends with one line.

`scripts/fuzz/all.py --kinds damages` does the same with many more.
"""

import pytest

from scripts.fuzz.folders import COMMANDS, Damage, damaged, drawn
from scripts.fuzz.judged import shortcoming

EXAMPLES = {"plan": 4, "report": 4}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_damage_is_answered_with_a_traceback(command: str):
    for each in drawn(command, EXAMPLES.get(command, 7)):
        assert shortcoming(each) == "", each.name


FOUND = {
    "a last line that comes twice": ("resume", Damage("metrics.csv", "twice", 0.99, 1)),
    "a state without its models": ("resume", Damage("state.pt", "lacking", 0.0, 0)),
    "no state at all": ("resume", Damage("state.pt", "value", 0.99, 8)),
    "an empty config": ("resume", Damage("config.json", "emptied", 0.0, 0)),
    "a config that is a list": ("report", Damage("config.json", "value", 0.99, 11)),
    "overrides that are a text": ("verify", Damage(".hydra/overrides.yaml", "value", 0.99, 8)),
    "choices that are no texts": ("verify", Damage(".hydra/hydra.yaml", "value", 0.99, 8)),
    "a summary that is a number": ("compare", Damage("summary.json", "value", 0.99, 4)),
    "a summary in another encoding": ("report", Damage("summary.json", "encoded", 0.0, 0)),
    "a table of zeros and quotes": ("report", Damage("metrics.csv", "noise", 0.4, 1)),
    "clients in another encoding": ("report", Damage("clients.csv", "encoded", 0.0, 0)),
}


@pytest.mark.parametrize(("command", "damage"), FOUND.values(), ids=FOUND)
def test_what_once_fell_short(command: str, damage: Damage):
    assert shortcoming(damaged(command, damage)) == ""
