"""The table of roles: it agrees with `conf/`, and an installed package adds to it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from composing import CONF, experiment

from fedexp.config import catalog, roles
from fedexp.config.roles import ROLES, Role
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError

PACKAGE = {
    "sparse/__init__.py": "",
    "sparse/roles.py": """
from fedexp.parts import Role

compression = Role("compression", "sparse.contract.Compression", "none", step="shrink", when="leaving")
""",
    "sparse/contract.py": """
from dataclasses import dataclass
from fedexp.parts import Context, Memory, Part, Uploads


@dataclass(frozen=True, kw_only=True)
class Compression(Part):
    ratio = 1.0

    def shrink(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        return uploads, memory
""",
    "sparse/first.py": """
from dataclasses import dataclass
from typing import Annotated
from fedexp.parts import Range
from sparse.contract import Compression


@dataclass(frozen=True, kw_only=True)
class First(Compression):
    every: Annotated[int, Range(1)] = 2

    @property
    def ratio(self):
        return 1 / self.every

    def shrink(self, uploads, memory, ctx):
        delta = uploads.delta.clone()
        delta[:, ctx.round % self.every :: self.every] = 0
        return uploads.with_delta(delta), {"columns": {"rounds": memory.get("rounds", 0) + 1}, "rounds": ctx.round}
""",
    "sparse/conf/compression/none.yaml": "# Rows travel whole\n_target_: sparse.contract.Compression\n",
    "sparse/conf/compression/first.yaml": "# Entries take turns\n_target_: sparse.first.First\nevery: 4\n",
    "sparse-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: sparse\nVersion: 1.0\n",
    "sparse-1.0.dist-info/entry_points.txt": "[fedexp.groups]\ncompression = sparse.roles:compression\n",
}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
class TestRole:
    def test_is_a_group_whose_options_are_of_its_contract(self, role: Role):
        for option in catalog.options(CONF, role.name):
            node = catalog.part(CONF, role.name, option)
            assert issubclass(spec.find(node["_target_"], role.name), role.kind), option

    def test_its_default_is_the_contract_itself_and_the_root_configs(self, role: Role):
        if role.default:
            assert spec.find(catalog.part(CONF, role.name, role.default)["_target_"], "") is role.kind
            assert catalog.defaults(CONF)[role.name] == role.default

    def test_a_step_is_a_method_of_the_contract(self, role: Role):
        assert bool(role.step) == bool(role.when)
        assert not role.step or callable(getattr(role.kind, role.step))


def test_every_group_of_parts_is_a_role_and_every_role_a_part_of_the_experiment():
    groups = {path.parent.name for path in CONF.glob("*/*.yaml") if "_target_" in catalog.load(path)}
    assert groups == set(roles.names())
    assert dict(experiment().parts()).keys() == groups


def test_an_unknown_group_is_an_unknown_key():
    with pytest.raises(ConfigError, match="unknown key compression; known: aggregator, "):
        spec.build({"_target_": "fedexp.simulation.experiment.Experiment", "compression": {}})


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an installed package that brings a group of its own."""
    folder = tmp_path_factory.mktemp("outside")
    for name, text in PACKAGE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def fedexp(outside: Path, *words: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(outside), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(outside / "cache")}
    command = [sys.executable, "-m", "fedexp.cli", *words]
    return subprocess.run(command, cwd=outside, env=environment, capture_output=True, text=True, check=False)


def test_an_installed_package_adds_a_group(outside: Path):
    small = ("run", "experiment=smoke", "rounds=2", "engine.workers=1", "pictures=false", "hydra.run.dir=one")
    done = fedexp(outside, *small, "compression=first", "compression.every=2")
    assert done.returncode == 0, done.stderr
    lines = (outside / "one" / "metrics.csv").read_text().splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    assert [row["compression.rounds"] for row in rows] == ["1", "2"]
    assert all(float(row["mb_up"]) == float(row["mb_down"]) / 2 for row in rows)
    assert json.loads((outside / "one" / "summary.json").read_text())["rounds"] == 2
    checked = fedexp(outside, "verify", "one")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_its_default_does_nothing_and_its_keys_are_checked(outside: Path):
    shown = fedexp(outside, "run", "--cfg", "job", "--package", "compression")
    assert shown.stdout == "# @package compression\n_target_: sparse.contract.Compression\n"
    refused = fedexp(outside, "run", "compression=first", "compression.every=0")
    assert refused.stderr == "fedexp: compression.every must be an integer >= 1, got 0\n"
    assert refused.returncode == 2


def test_an_entry_point_that_is_no_role_is_told(tmp_path: Path):
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace('Role("compression"', 'Role("selector"'))
    told = fedexp(tmp_path, "run", "--cfg", "job")
    assert told.returncode == 2
    assert "the entry point compression = sparse.roles:compression of fedexp.groups must name" in told.stderr
