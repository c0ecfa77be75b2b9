"""The launchers are ours: what they need is the package that does the work, and no plugin of Hydra."""

import tomllib
from pathlib import Path

from composing import CONF
from hydra.core.global_hydra import GlobalHydra

from fedexp.config.compose import Request, make_composer
from fedexp.config.launchers import LAUNCHERS

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_all_are_known_by_their_names():
    assert {"basic", *LAUNCHERS} <= set(make_composer(Request(CONF, [])).options("hydra/launcher"))
    GlobalHydra.instance().clear()


def test_nothing_asks_for_a_plugin_of_hydra():
    extras = PROJECT["optional-dependencies"].values()
    asked = [*PROJECT["dependencies"], *(one for extra in extras for one in extra)]
    assert [one for one in asked if one.startswith("hydra")] == ["hydra-core>=1.3.2,<1.4"]
