"""Configs, worlds and data folders for all tests."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import settings
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedexp.config import one_at_a_time
from fedexp.config.location import conf_dir
from fedexp.config.resolvers import register_resolvers
from fedexp.core import part as spec
from fedexp.simulation.experiment import Experiment
from fedexp.training.examples import Examples

settings.register_profile("busy", deadline=None)  # a first call imports, and the machine may be shared
settings.load_profile("busy")

with redirect_stderr(sys.__stderr__):  # dp-accounting's logging closes what was sys.stderr at its import
    import absl.logging  # noqa: F401

CONF = conf_dir()
MADE = ("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60")
TINY = (
    "scenario.clients=6",
    "scenario.participants=3",
    "rounds=2",
    "engine=loop",
    "engine.workers=1",
    "pictures=false",
)
LONGEST = ("test_killed_sweeps.py", "test_engine.py", "test_resume.py", "test_dp_sgd.py", "test_mlflow.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that no process is left with one of them when the others are done."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Measurements and parsed files of the tests stay out of the user's cache."""
    os.environ.setdefault("FEDEXP_CACHE", str(tmp_path_factory.mktemp("cache")))


def config(*overrides: str) -> dict[str, Any]:
    """The composed plain config of these overrides."""
    register_resolvers()
    one_at_a_time.register()
    values = [word for word in overrides if is_plain_value(word)]
    composed = deepcopy(chosen(*(word for word in overrides if word not in values)))
    try:
        for value in OverridesParser.create().parse_overrides(values):
            OmegaConf.update(composed, value.key_or_group, value.value(), merge=True)
    except OmegaConfBaseException:  # told as Hydra tells it
        composed = chosen(*overrides)
    plain = OmegaConf.to_container(composed, resolve=True)
    assert isinstance(plain, dict)
    return plain  # type: ignore[return-value]


@cache
def chosen(*overrides: str) -> DictConfig:
    """What Hydra composes, once a process: choosing files costs it 90 ms, setting values in them nothing."""
    with initialize_config_dir(config_dir=str(CONF), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def is_plain_value(override: str) -> bool:
    """Whether an override sets a key that is there, and chooses no file."""
    key = override.partition("=")[0]
    return not ({*"+~@/"} & set(key) or key.startswith("hydra.") or (CONF / key).is_dir())


def experiment(*overrides: str) -> Experiment:
    """The experiment of these overrides."""
    return spec.build(config(*overrides))


@pytest.fixture
def tiny() -> Callable[..., dict[str, Any]]:
    """Configs of runs that take a fraction of a second, on made data unless a dataset is named."""

    def composed(*overrides: str) -> dict[str, Any]:
        made = () if any(word.startswith("dataset=") for word in overrides) else MADE
        return config(*made, *TINY, *overrides)

    return composed


@pytest.fixture
def _double(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trains in float64, where rounding can neither hide a wrong formula nor be amplified into a difference."""
    inputs = Examples.inputs
    monkeypatch.setattr(Examples, "inputs", lambda self, index: inputs(self, index).double())
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the real datasets; tests that need it are skipped where there is none."""
    places = [os.environ.get("FEDEXP_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    for place in places:
        if place and (Path(place) / "MNIST").is_dir():
            return Path(place)
    pytest.skip("no folder of real data; set FEDEXP_DATA")


@pytest.fixture
def tree() -> Callable[[Path], list[str]]:
    """All files and folders below a folder."""
    return lambda folder: sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
