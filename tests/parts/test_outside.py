"""A method is its file alone: in a module of one's own, under another name, it gives the same bytes.

So no other file of the package knows a method by its class, its module or its option.
"""

import re
from copy import deepcopy
from importlib import import_module
from pathlib import Path

import pytest
from composing import CONF
from test_every_option import NEEDS
from worlds import Tiny, demand_same_rounds, world_of

from fedexp.config import catalog

GROUPS = ("local", "aggregator", "pre_aggregation", "server_optimizer", "selector", "clustering", "pacing")
CHOSEN = {
    f"{group}={name}": catalog.part(CONF, group, name) for group in GROUPS for name in catalog.options(CONF, group)
}
CLASSES = {option: part["_target_"] for option, part in CHOSEN.items() if ".contract." not in part["_target_"]}


@pytest.mark.parametrize("option", CLASSES)
def test_a_method_in_a_module_of_ones_own_gives_the_same_bytes(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
):
    module, _, name = CLASSES[option].rpartition(".")
    group, outside = option.partition("=")[0], f"outside_{option.replace('=', '_')}"
    source = import_module(module).__file__
    assert source is not None
    (tmp_path / f"{outside}.py").write_text(re.sub(rf"\b{name}\b", "Outside", Path(source).read_text()))
    monkeypatch.syspath_prepend(tmp_path)
    ours = tiny(option, *NEEDS.get(option, ()))
    theirs = deepcopy(ours)
    theirs[group]["_target_"] = f"{outside}.Outside"
    demand_same_rounds(world_of(ours), world_of(theirs))
