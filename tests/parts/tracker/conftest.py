"""Every test has a folder of its own to run in, and a database that is made already."""

import os
import shutil
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import ended, forget, fork
from tracking import LEFTOVERS, PROGRESS, Copy, Server

from fedexp.parts.tracker import courier, mlflow


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="session")
def packages() -> None:
    """What the senders of these tests import, imported here once; those of `test_every_option` do it themselves."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        for name in ("mlflow.tracking", "torch.utils.tensorboard", "tensorboard.plugins.hparams.summary_v2"):
            if find_spec(name.partition(".")[0]) is not None:
                import_module(name)


@pytest.fixture(autouse=True)
def _copies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Senders are copies of this process, but for those of runs that are processes of their own."""
    if request.path.stem in ("test_mlflow", "test_tensorboard"):
        request.getfixturevalue("packages")
        monkeypatch.setattr(courier, "_start", Copy)


@pytest.fixture(scope="session")
def empty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database without runs, made once because it takes seconds."""
    if find_spec("mlflow") is None:
        pytest.skip("mlflow is not installed")
    request.getfixturevalue("packages")
    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    for leftover in LEFTOVERS:
        path.with_name(leftover).touch()
    pid = fork()
    if not pid:
        forget()
        mlflow._set_quiet_defaults(10)
        with (path.parent / PROGRESS).open("a", buffering=1) as progress:
            ended(lambda: mlflow.create_database(path, 10, lambda: progress.write("a statement\n")) or 0)
    assert os.waitpid(pid, 0)[1] == 0
    return path


@pytest.fixture
def database(empty: Path, tmp_path: Path) -> Path:
    """The database that runs below `outputs` find by themselves."""
    (tmp_path / "outputs").mkdir()
    return Path(shutil.copy(empty, tmp_path / "outputs" / "mlflow.db"))


@pytest.fixture(scope="module")
def server(empty: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    shutil.copy(empty, server.database)
    try:
        server.start()
        yield server
    finally:
        server.kill()
