"""One place for an option: its YAML file, its Python file and its test have one name, in folders of one name.

`conf/GROUP/OPTION.yaml` is `fedexp/parts/GROUP/OPTION.py` is `tests/parts/GROUP/test_OPTION.py`; what a group must do
stands in `fedexp/parts/GROUP/contract.py`. Whatever lies elsewhere is listed here with the reason. The options of
`hydra/launcher` are no YAML files: `fedexp/sweep/launchers` holds them, `tests/sweep/launchers` their tests.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from composing import CONF

import fedexp
from fedexp.config import catalog
from fedexp.config.roles import ROLES

PACKAGE, TESTS = Path(fedexp.__file__).parent, Path(__file__).parents[1]


@dataclass(frozen=True)
class Place:
    """The module of an option's class, the file of its test and the contract of its group."""

    module: str
    test: str
    contract: str


def usual(group: str, option: str) -> Place:
    room = f"parts/{group}"
    return Place(f"fedexp.parts.{group}.{option}", f"{room}/test_{option}.py", f"{room}/contract.py")


def contract(group: str) -> Place:
    return usual(group, "contract")


ENGINE = Place("fedexp.training.engine.contract", "training/engine/test_contract.py", "training/engine/contract.py")
DOES_NOTHING = "an option that does nothing is the base class of the contract"
STANDS_ABOVE = "an engine chooses among real trainers, which stand above parts; all three are a few lines of one file"
BOTH_RATES = "the clients' rate and the server's change alike: two groups, one set of classes in parts/schedule"
HOME, MOVING = {"server_schedule": "schedule"}, ("exponential", "step", "cosine", "linear")
NOTHING = [role for role in ROLES if role.default]
ELSEWHERE = {
    **{f"{role.name}/{role.default}": (contract(HOME.get(role.name, role.name)), DOES_NOTHING) for role in NOTHING},
    **{f"server_schedule/{name}": (usual("schedule", name), BOTH_RATES) for name in MOVING},
    "engine/auto": (ENGINE, STANDS_ABOVE),
    "engine/loop": (ENGINE, STANDS_ABOVE),
    "engine/stacked": (ENGINE, STANDS_ABOVE),
    **{
        f"model/{path.stem}": (usual("model", "chain"), "a list of layers in YAML: it is model=chain")
        for path in sorted(CONF.glob("model/*.yaml"))
        if catalog.part(CONF, "model", path.stem).get("_target_") == "fedexp.parts.model.chain.Chain"
        and path.stem != "chain"
    },
    "availability/lognormal": (usual("availability", "markov"), "it is availability=markov with spread shares"),
    "availability/sin_lognormal": (usual("availability", "day"), "it is availability=day with spread shares"),
    "local/full_batch_step": (usual("local", "sgd"), "it is local=sgd with one step on all of a client's examples"),
}

OVER_ALL = {"promises", "whole_runs"}  # what all robust rules promise, and whole runs of every selector


def chosen() -> Iterator[tuple[str, str]]:
    """The options that name a class, and its dotted path."""
    for path in sorted(CONF.glob("*/*.yaml")):
        target = catalog.part(CONF, path.parent.name, path.stem).get("_target_")
        if target is not None:
            yield path.relative_to(CONF).with_suffix("").as_posix(), target


TARGETS = dict(chosen())


@pytest.mark.parametrize("option", TARGETS)
def test_every_option_has_one_place(option: str):
    group, _, name = option.rpartition("/")
    place = ELSEWHERE[option][0] if option in ELSEWHERE else usual(group, name)
    assert TARGETS[option].rpartition(".")[0] == place.module
    for file in (PACKAGE.parent / f"{place.module.replace('.', '/')}.py", TESTS / place.test, PACKAGE / place.contract):
        assert file.is_file(), f"{option} has no {file}"


@pytest.mark.parametrize("option", ELSEWHERE)
def test_no_exception_is_stale(option: str):
    assert option in TARGETS, f"conf/{option}.yaml is gone, or names no class"
    module = TARGETS[option].rpartition(".")[0]
    group, _, name = option.rpartition("/")
    assert module != usual(group, name).module, f"{option} lies where all options lie"


@pytest.mark.parametrize("group", sorted({option.split("/")[0] for option in TARGETS} - {"engine"}))
def test_every_test_beside_an_option_is_of_a_file_beside_it(group: str):
    rooms = {path.stem for path in (PACKAGE / "parts" / group).glob("*.py")}
    tests = {path.stem.removeprefix("test_") for path in (TESTS / "parts" / group).glob("test_*.py")}
    assert tests - rooms <= OVER_ALL, f"tests of no file of fedexp/parts/{group}"
