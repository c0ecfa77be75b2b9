"""Every test of the command line works in an empty folder of its own."""

import pytest
from command_line import Recorder

from fedexp.run import run as execution


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE", "HYDRA_FULL_ERROR", "FEDEXP_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def runs(monkeypatch):
    recorder = Recorder()
    for name in ("run", "complete"):
        monkeypatch.setattr(execution, name, recorder)
    return recorder
