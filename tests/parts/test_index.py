"""The names that authors of parts import: one exact index, and enough for what the contracts speak of."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

import fedexp
from fedexp import parts
from fedexp.config.location import conf_dir
from fedexp.core.part import Part
from fedexp.parts import clients_data, questions
from fedexp.simulation import context_views, fleet_queries
from fedexp.simulation.context import RoundContext

HERE = Path(fedexp.__file__).parent
BASES = [found for name in parts.__all__ if isinstance(found := getattr(parts, name), type)]
PIECES = [
    (clients_data.ClientsData, context_views.ClientQueries),
    (questions.FleetView, fleet_queries.FleetQueries),
    (questions.Traffic, fleet_queries.TrafficQueries),
    (questions.Validation, context_views.ValidationQueries),
    (questions.PublicData, context_views.PublicQueries),
    (questions.AuditView, context_views.AuditQueries),
]
CONTRACTS = [found for found in BASES if found.__module__.endswith(".contract") and issubclass(found, Part)]


def test_the_index_is_exact():
    stub = ast.parse((HERE / "parts" / "__init__.pyi").read_text())
    lines = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    assert parts.__all__ == sorted(alias.name for node in lines for alias in node.names)
    for node in lines:
        for alias in node.names:
            assert getattr(parts, alias.name) is vars(sys.modules[str(node.module)])[alias.name], alias.name


def test_the_index_is_shown():
    assert {*parts.__all__} <= {*dir(parts)}
    assert {*fedexp.__all__} <= {*dir(fedexp)}


FILES = {"dataset", "tracker"}  # groups whose options read formats and write elsewhere, by rooms of their own
ROOMS = {  # options that read files, or whose mathematics fill a room
    *("model/torch", "model/chain", "model/refit", "federation/file", "fleet/trace", "availability/trace"),
    *("selector/shapley_selector", "aggregator/matching", "aggregator/pfnm", "aggregator/spahm"),
}


def test_our_options_need_no_more_than_the_index_and_their_group():
    for path in sorted((HERE / "parts").glob("*/*.py")):
        option = path.relative_to(HERE / "parts").with_suffix("").as_posix()
        if path.stem in ("__init__", "contract") or path.parent.name in FILES or option in ROOMS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("fedexp"):
                continue
            if not str(node.module).startswith(f"fedexp.parts.{path.parent.name}"):
                assert not {alias.name for alias in node.names} - {*parts.__all__}, option


def test_what_is_not_in_the_index_is_not_there():
    assert not hasattr(parts, "World")
    assert not hasattr(parts, "np")


def test_every_group_with_parts_has_its_contract_in_the_index():
    targets = re.compile(r"^_target_: fedexp\.parts\.(\w+)\.", re.M)
    groups = {group for path in conf_dir().glob("*/*.yaml") for group in targets.findall(path.read_text())}
    assert groups == {found.__module__.split(".")[2] for found in CONTRACTS}


def test_whatever_a_contract_speaks_of_is_in_the_index():
    for contract in CONTRACTS:
        for name, method in inspect.getmembers(contract, inspect.isfunction):
            if name.startswith("_") or method.__module__ != contract.__module__:
                continue
            spoken = {leaf for hint in get_type_hints(method).values() for leaf in leaves(hint)}
            own = {kind.__name__ for kind in spoken if kind.__module__.startswith("fedexp.")}
            assert own <= set(parts.__all__), f"{contract.__name__}.{name}"


def leaves(hint: object) -> set[type]:
    """The classes of an annotation."""
    inner = [leaf for argument in getattr(hint, "__args__", ()) for leaf in leaves(argument)]
    return {*inner, *([hint] if isinstance(hint, type) else [])}


def test_a_part_may_ask_what_the_round_answers_and_nothing_else():
    asked = {name for name in vars(parts.Context) if not name.startswith("_")}
    answered = {name for name in (*vars(RoundContext), *RoundContext.__annotations__) if not name.startswith("_")}
    assert asked == answered
    assert "world" not in asked


@pytest.mark.parametrize(("asked", "answers"), PIECES, ids=lambda kind: kind.__name__)
def test_the_pieces_are_answered_too(asked: type, answers: type):
    names = {name for name in vars(asked) if not name.startswith("_")}
    assert names == {name for name in vars(answers) if not name.startswith("_")}
    assert all(inspect.getdoc(vars(asked)[name]) for name in names)


def test_every_question_says_what_it_asks():
    for name, member in vars(parts.Context).items():
        assert name.startswith("_") or inspect.getdoc(member), name


def test_the_index_waits_for_nothing():
    heavy = "import sys, fedexp.parts; print('torch' in sys.modules or 'numpy' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
    names = "ConfigError, Receiver, SendingTracker, SyncState"
    light = f"import sys; from fedexp.parts import {names}; print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
