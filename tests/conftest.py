"""Configs, worlds and data folders for all tests."""
# ruff: noqa: E402

import sys

sys.dont_write_bytecode = False  # rewriting the asserts of all tests takes ten seconds, which whoever reads it saves

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import composed_once
import pytest
import torch
import tried_once
from composing import tiny as composed_tiny
from hypothesis import settings
from networks import narrow_convolution, narrow_resnet18
from threadpoolctl import threadpool_limits

from fedexp.parts.model import chain
from fedexp.training.client.examples import Examples

pytest.register_assert_rewrite("preparation")
composed_once.remember()
tried_once.remember()
threadpool_limits(limits=1)  # as the command does: threads of several test processes would wait for each other
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # and what they start
# A first call imports, and the machine may be shared; every run of the suite draws other examples.
settings.register_profile("busy", deadline=None, max_examples=100 if os.environ.get("FEDEXP_FULL") == "1" else 25)
settings.load_profile("busy")
os.fsync = lambda fd: None  # no test cuts the power

with redirect_stderr(sys.__stderr__):  # dp-accounting's logging closes what was sys.stderr at its import
    import absl.logging  # noqa: F401

NARROW_SHAPES = {name: cache(getattr(chain, name).__wrapped__) for name in ("layer_shapes", "fits_images")}


SLOW_FOLDERS = (  # of tests that make whole runs or start processes
    *("authors", "cli", "commands", "contest", "export", "new", "parts/tracker", "plan", "predict", "pretend"),
    *("replay", "report", "run", "search", "sweep", "verify"),
)
SLOW_FILES = (  # elsewhere, those that take longest
    *("config/test_bundles.py", "maths/shapley/surrogate/test_estimator.py", "parts/loss/test_contract.py"),
    *("parts/model/test_contract.py", "parts/model/test_torch.py", "parts/model/test_torchvision.py"),
    *("parts/privacy/test_accounting.py", "parts/privacy/test_dp_sgd.py", "simulation/checks/test_contract_checks.py"),
    *("simulation/test_targets.py", "training/engine/test_contract.py", "training/test_own_models.py"),
    *("test_api.py", "test_api_folders.py", "test_damaged_folders.py", "test_docs.py", "test_every_option.py"),
    *("test_fuzz.py", "test_kills.py", "test_memory.py", "test_other_systems.py", "test_readme.py", "test_site.py"),
    "test_tutorial.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the slow, which come first, so that no process is left with one of them when the others are done."""
    for item in items:
        name = item.path.relative_to(Path(__file__).parent).as_posix()
        if name in SLOW_FILES or name.startswith(tuple(f"{folder}/" for folder in SLOW_FOLDERS)):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """What lives as long as the tests is not looked through for garbage, and compiled; what is new is neither."""
    gc.freeze()
    gc.set_threshold(50_000)
    sys.dont_write_bytecode = True  # two modules that a test writes in one second would be taken for each other
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def pytest_unconfigure() -> None:
    """What stays frozen is not freed at the end of the process, of which Triton complains in fifty lines."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Commands are forked from a copy of this process in which no test has run."""
    if "processes" in sys.modules:
        sys.modules["processes"].begin()


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Measurements and parsed files of the tests stay out of the user's cache."""
    os.environ.setdefault("FEDEXP_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def tiny() -> Callable[..., dict[str, Any]]:
    """Configs of runs that take a fraction of a second, on made data unless a dataset is named."""

    return composed_tiny


@pytest.fixture
def _double(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trains in float64, where rounding can neither hide a wrong formula nor be amplified into a difference."""
    inputs = Examples.inputs

    def double(self: Examples, index: torch.Tensor | slice) -> torch.Tensor:
        batch = inputs(self, index)
        return batch.double() if batch.is_floating_point() else batch  # tokens are looked up

    monkeypatch.setattr(Examples, "inputs", double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def _narrow(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Gives the deepest networks their layers with few channels: the same mathematics, seconds sooner."""
    monkeypatch.setattr("fedexp.parts.model.complex_cnn.WIDTHS", (8, 8, 8, 8, 16, 16))
    monkeypatch.setitem(chain.LAYER_FACTORIES, "conv", narrow_convolution)
    monkeypatch.setattr(chain, "IMAGE_LAYERS", (*chain.IMAGE_LAYERS, narrow_convolution))
    for name, narrow in NARROW_SHAPES.items():
        monkeypatch.setattr(chain, name, narrow)
    if "resnet18_gn" in request.node.name:
        monkeypatch.setitem(import_module("torchvision.models._api").BUILTIN_MODELS, "resnet18", narrow_resnet18())


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
