"""Every number of every option, found from conf/, at the ends of what can be written: one line at once, or a part."""

import math
import pickle
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest
from composing import CONF, chosen, config
from omegaconf import DictConfig, OmegaConf

from fedexp.core.errors import ConfigError
from fedexp.core.nested import walk
from fedexp.core.part import MAX_INTEGER, Part, build

GROUPS = sorted(path.name for path in CONF.iterdir() if path.is_dir())
ODD = (math.nan, math.inf, -math.inf, -1, 0, 1e20, 10**20, 10**400, "3", [3], None, True)
ENDLESS = {  # keys for which infinity means something
    "aggregator.radius",
    "checkpoint_s",
    "clustering.eps1",
    "clustering.eps2",
    "clustering.threshold",
    "privacy.clip",
}
GIVEN = {  # what must be told
    "privacy": {"clip": 1.0, "noise_multiplier": 1.0, "delta": 1e-3},
    "availability": {"path": "when.csv"},
    "dataset": {"path": "mine", "file": "mine.csv", "target": "sick"},
}
PARTS = [group for group in GROUPS if group not in ("algorithm", "partition", "setting", "experiment")]


def alone(group: str, path: Path) -> dict[str, Any]:
    """An option among the defaults; Hydra would take a hundred times as long to put it there."""
    config()  # registers what interpolations ask for
    root, option = pickle.loads(chosen()), OmegaConf.load(path)
    assert isinstance(option, DictConfig)
    own = option if "_target_" in option else option[group]
    root[group] = {key: value for key, value in own.items_ex(resolve=False) if key != "defaults"}
    node = cast(dict[str, Any], OmegaConf.to_container(root[group], resolve=True))
    return node | {key: value for key, value in GIVEN.get(group, {}).items() if node.get(key, 0) in (None, "???")}


def numbers(node: dict[str, Any], dot: str = "") -> Iterator[str]:
    for key, value in walk(node):
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{dot}{key}"


def with_value(node: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    changed: Any = deepcopy(node)
    *path, last = key.split(".")
    holder = changed
    for step in path:
        holder = holder[step]
    holder[last] = value
    return changed


def tried(node: dict[str, Any], key: str, value: Any, dot: str) -> str | None:
    """What is said of a value; None where it is taken."""
    try:
        built = build(with_value(node, key, value), dot)
    except ConfigError as error:
        return str(error)
    assert isinstance(built, Part)
    return None


def judge(node: dict[str, Any], key: str, dot: str) -> None:
    whole = dot + ("." if dot else "") + key
    said = {repr(value): tried(node, key, value, dot) for value in ODD}
    for text in filter(None, said.values()):
        assert "\n" not in text
        assert re.search(rf"\b{re.escape(key.rpartition('.')[2])}\b", text), text
    assert said["nan"], whole
    assert said["'3'"], whole
    assert said["True"], whole
    assert said[repr(10**400)], whole
    assert (said["inf"] is None) == (whole in ENDLESS), whole
    if said["1e+20"] and not said["0"]:
        assert said[repr(10**20)], f"{whole}: an integer without end"


@pytest.mark.parametrize("group", PARTS)
def test_numbers_of_an_option(group: str):
    for path in sorted((CONF / group).glob("*.yaml")):
        node = alone(group, path)
        for key in numbers(node):
            judge(node, key, group)


def test_numbers_of_the_root():
    whole = config()
    for key in numbers({name: value for name, value in whole.items() if not isinstance(value, dict)}):
        judge(whole, key, "")
    for name in ("scenario", "evaluation"):
        for key in numbers(whole[name]):
            judge(whole[name], key, name)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("rounds=100000000000000000000", f"rounds must be an integer >= 1 and at most {MAX_INTEGER:,}, got 1000000"),
        ("engine.workers=1000", "engine.workers must be an integer in [1, 256] or one of auto, got 1000"),
        ("seed=100000000000000000000", f"seed must be an integer >= 0 and at most {2**63 - 1:,}, got 1"),
        ("seed=-1", "seed must be an integer >= 0, got -1"),
        ("local.lr=inf", "local.lr must be a number > 0 and finite, got inf"),
        (
            "scenario.clients=100000000000000000000",
            "scenario.clients must be an integer >= 1 and at most 1,000,000,000",
        ),
    ],
)
def test_a_number_beyond_all_use_is_named_with_its_bound(word: str, told: str):
    with pytest.raises(ConfigError, match=re.escape(told)):
        build(config(word))
