"""Every test has a folder of its own to run in, and a database that is made already."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tracking import Server


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database without runs, made once because it takes seconds."""
    if find_spec("mlflow") is None:
        pytest.skip("mlflow is not installed")
    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    words = "from pathlib import Path; from fedexp.parts.tracker import mlflow; mlflow._calm(10); "
    code = f"{words} mlflow.provide(Path({str(path)!r}), 10)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)
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
    server.start()
    yield server
    server.kill()
