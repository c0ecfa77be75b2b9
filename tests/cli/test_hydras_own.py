"""What Hydra's users know: callbacks are called, and launchers of other people's plugins are left to Hydra."""

import sys
from pathlib import Path

import pytest

from fedexp import cli
from fedexp.sweep import command

CALLBACK = """
from hydra.experimental.callback import Callback
heard = []
class Listening(Callback):
    def on_run_start(self, config, **_): heard.append("run start")
    def on_run_end(self, config, **_): heard.append("run end")
    def on_multirun_start(self, config, **_): heard.append("sweep start")
    def on_multirun_end(self, config, **_): heard.append("sweep end")
    def on_job_start(self, config, **_): heard.append(f"seed {config.seed}")
"""


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a callback hears, whose module lies in this folder."""
    (tmp_path / "listening_hydra.py").write_text(CALLBACK)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("listening_hydra", None)
    import listening_hydra  # pyright: ignore[reportMissingImports]

    return listening_hydra.heard


WORDS = ("experiment=smoke", "+hydra.callbacks.x._target_=listening_hydra.Listening")


def test_a_run_tells_its_callbacks(runs, heard: list[str]):
    assert cli.main(["run", *WORDS, "hydra.run.dir=one"]) == 0
    assert heard == ["run start", "seed 0", "run end"]
    assert [str(folder) for _, folder in runs.calls] == ["one"]


@pytest.mark.parametrize("sweeper", ["basic", "one_at_a_time"])
def test_a_launcher_of_others_gets_every_point(runs, heard: list[str], monkeypatch, sweeper: str):
    monkeypatch.setattr(command, "build_launcher", lambda _: None)
    words = (*WORDS, f"hydra/sweeper={sweeper}", "seed=0,1", "hydra.sweep.dir=many")
    assert cli.main(["run", "-m", *words]) == 0
    assert heard == ["sweep start", "seed 0", "seed 1", "sweep end"]
    assert [(config["seed"], str(folder)) for config, folder in runs.calls] == [(0, "many/0"), (1, "many/1")]
