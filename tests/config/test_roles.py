"""The table of roles: it agrees with `conf/`, and an installed package adds to it."""

import subprocess
import sys
from pathlib import Path

import pytest
from composing import CONF, experiment
from pages import GUIDE, files, write
from processes import typed

from fedexp.config import catalog, roles
from fedexp.config.roles import ROLES, Role
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.files import run_tables

GUIDED = {name: text for name, text in files(GUIDE.read_text()).items() if name.startswith("sparse/")}
INSTALLED = {  # what pip makes of the guide's pyproject.toml
    "sparse/__init__.py": "",
    "sparse-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: sparse\nVersion: 1.0\n",
    "sparse-1.0.dist-info/entry_points.txt": "[fedexp.groups]\ncompression = sparse.roles:compression\n",
}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
class TestRole:
    def test_is_a_group_whose_options_are_of_its_contract(self, role: Role):
        for option in catalog.options(CONF, role.name):
            node = catalog.part(CONF, role.name, option)
            assert issubclass(spec.find_class(node["_target_"], role.name), role.kind), option

    def test_its_default_is_the_contract_itself_and_the_root_configs(self, role: Role):
        if role.default:
            assert spec.find_class(catalog.part(CONF, role.name, role.default)["_target_"], "") is role.kind
            assert catalog.defaults(CONF)[role.name] == role.default

    def test_a_step_is_a_method_of_the_contract(self, role: Role):
        assert bool(role.step) == bool(role.when)
        assert not role.step or callable(getattr(role.kind, role.step))


def test_every_group_of_parts_is_a_role_and_every_role_a_part_of_the_experiment():
    groups = {path.parent.name for path in CONF.glob("*/*.yaml") if "_target_" in catalog.load(path)}
    assert groups == set(roles.role_names())
    assert dict(experiment().parts()).keys() == groups


def test_an_unknown_group_is_an_unknown_key():
    with pytest.raises(ConfigError, match="unknown key compression; known: aggregator, "):
        spec.build({"_target_": "fedexp.simulation.setup.experiment.Experiment", "compression": {}})


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package of the guide, which brings a group of its own."""
    folder = tmp_path_factory.mktemp("outside")
    write(folder, GUIDED | INSTALLED)
    return folder


def fedexp(outside: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return typed(outside, *words, PYTHONPATH=str(outside), XDG_CACHE_HOME=str(outside / "cache"))


def test_an_installed_package_adds_a_group(outside: Path):
    small = ("run", "experiment=smoke", "rounds=2", "engine.workers=1", "pictures=false", "hydra.run.dir=one")
    done = fedexp(outside, *small, "compression=turns", "compression.every=4")
    assert done.returncode == 0, done.stderr
    rows = run_tables.read_frame(outside / "one" / "metrics.csv")
    assert rows["mb_up"].tolist() == (rows["mb_down"] / 4).tolist()
    checked = fedexp(outside, "verify", "one")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_its_default_does_nothing_and_its_keys_are_checked(outside: Path):
    shown = fedexp(outside, "run", "--cfg", "job", "--package", "compression")
    assert shown.stdout == "# @package compression\n_target_: sparse.contract.Compression\n"
    refused = fedexp(outside, "run", "compression=turns", "compression.every=0")
    assert refused.stderr == "fedexp: compression.every must be an integer >= 1, got 0\n"
    assert refused.returncode == 2


def test_it_is_listed(outside: Path):
    listed = fedexp(outside, "list", "compression")
    assert [line.split()[0] for line in listed.stdout.splitlines()[:2]] == ["none*", "turns"]
    assert "compression" in fedexp(outside, "list").stdout


def test_its_keys_complete(outside: Path):
    offered = fedexp(outside, "__complete", "fedexp run compression=turns compression.")
    assert "compression.every=" in offered.stdout.split()


ROLE = "from fedexp.parts import Role\ncompression = Role({})\n"
WHOLE = '"compression", "sparse.contract.Compression", "none", step="shrink", when="leaving"'
WRONG = {
    "no role": ("compression = 3\n", "must name a fedexp.parts.Role, got 3; mend or uninstall that package"),
    "raises": ("1 / 0\n", "cannot be imported: ZeroDivisionError: division by zero; mend or uninstall"),
    "a key": (ROLE.format(WHOLE.replace("compression", "rounds", 1)), "no group or key of fedexp has, got 'rounds'; "),
    "a group": (ROLE.format(WHOLE.replace("compression", "selector", 1)), "group or key of fedexp has, got 'selector'"),
    "an odd name": (ROLE.format(WHOLE.replace("compression", "a b=c", 1)), "of small letters that no group or key"),
    "an algorithm": (
        ROLE.format(WHOLE.replace("compression", "algorithm", 1)),
        "group or key of fedexp has, got 'algo",
    ),
    "no default": (ROLE.format(WHOLE.replace('"none"', '""')), "must have a default, the option of runs that choose"),
    "a step at no time": (ROLE.format(WHOLE.replace(', when="leaving"', "")), "must have both a step and when it is"),
    "no options": (ROLE.format(WHOLE.replace("compression", "other", 1)), "its package needs conf/other/NAME.yaml; "),
    "no contract": (ROLE.format(WHOLE.replace("Compression", "Nothing")), "sparse.contract.Nothing of the group"),
    "no step": (ROLE.format(WHOLE.replace("shrink", "nothing")), "must have a method nothing, which is the step of"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_package_that_is_wrong_is_told_in_one_line(outside: Path, wrong: str, monkeypatch: pytest.MonkeyPatch):
    text, complaint = WRONG[wrong]
    made = outside / wrong.replace(" ", "_")
    write(made, GUIDED | INSTALLED | {"sparse/roles.py": text})
    monkeypatch.syspath_prepend(made)
    for module in [name for name in sys.modules if name.partition(".")[0] == "sparse"]:
        monkeypatch.delitem(sys.modules, module)
    for cached in (roles.installed_roles, roles.option_folders):
        cached.cache_clear()
    try:
        with pytest.raises(ConfigError) as told:
            dict(experiment().parts())
    finally:
        for cached in (roles.installed_roles, roles.option_folders):
            cached.cache_clear()
    assert complaint in str(told.value)
    assert "\n" not in str(told.value)


def test_two_packages_with_one_group_are_both_named(tmp_path: Path):
    again = {name.replace("sparse", "dense"): text.replace("sparse", "dense") for name, text in INSTALLED.items()}
    twins = {name.replace("sparse", "dense", 1): text.replace("sparse.", "dense.") for name, text in GUIDED.items()}
    write(tmp_path, GUIDED | INSTALLED | again | twins)
    told = fedexp(tmp_path, "list")
    assert told.returncode == 2
    assert "of the package dense and the group compression" in told.stderr or "both bring a group" in told.stderr


def test_the_last_option_of_a_group_counts():
    words = ["+compression=a", "seed=1", "compression=b"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roles, "installed_roles", lambda: (Role("compression", "", "none"),))
        assert roles.add_installed_roles(words) == ["seed=1", "+compression=b"]
        assert roles.add_installed_roles([]) == ["+compression=none"]


def test_a_run_whose_package_is_gone_says_which(outside: Path):
    told = fedexp(outside, "run", "--cfg", "job", "compression=turns")
    node = {"_target_": "sparse.turns.Turns", "every": 2}
    assert told.returncode == 0, told.stderr
    with pytest.raises(ConfigError, match="unknown key compression; it is a group of a package that is not installed"):
        spec.build({"_target_": "fedexp.simulation.setup.experiment.Experiment", "compression": node})


def test_what_does_nothing_is_idle_with_its_keys_and_without():
    (schedule,) = (role for role in ROLES if role.name == "schedule")
    nothing = {"_target_": schedule.contract}
    assert schedule.is_idle({})
    assert schedule.is_idle({"schedule": nothing})
    assert schedule.is_idle({"schedule": {**nothing, "warmup": 0}})
    assert not schedule.is_idle({"schedule": {**nothing, "warmup": 3}})
    assert not schedule.is_idle({"schedule": {"_target_": "fedexp.parts.schedule.step.Step", "warmup": 0}})
