"""What torchrun's environment says of this process, and a process whose peers never come."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import complaint

from fedexp.cli import main
from fedexp.core.errors import ConfigError
from fedexp.process import torchrun

THERE = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
LONE = ("run", "dataset=synthetic", "dataset.train_size=60", "dataset.test_size=20", "rounds=1", "hydra.run.dir=run")


def set_variables(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)


def test_one_of_two(monkeypatch: pytest.MonkeyPatch):
    set_variables(monkeypatch, {**THERE})
    assert (torchrun.processes(), torchrun.rank(), torchrun.under_torchrun()) == (2, 1, True)
    assert torchrun.meeting_point() == "127.0.0.1:29500"


def test_without_torchrun(monkeypatch: pytest.MonkeyPatch):
    set_variables(monkeypatch, dict.fromkeys(THERE))
    assert (torchrun.processes(), torchrun.rank(), torchrun.under_torchrun()) == (1, 0, False)
    monkeypatch.setenv("WORLD_SIZE", "2")  # as a scheduler may leave it
    assert torchrun.processes() == 1


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"RANK": "2"}, "got RANK=2 WORLD_SIZE=2; start them with torchrun, or unset RANK"),
        ({"RANK": "one"}, "got RANK=one WORLD_SIZE=2; start"),
        ({"RANK": "-1"}, "got RANK=-1 WORLD_SIZE=2; start"),
        ({"WORLD_SIZE": "two"}, "got RANK=1 WORLD_SIZE=two; start"),
        ({"MASTER_ADDR": None}, "MASTER_ADDR must be set for 2 processes; start them with torchrun"),
        ({"MASTER_PORT": ""}, "MASTER_PORT must be set for 2 processes; start"),
    ],
)
def test_variables_that_do_not_fit(monkeypatch: pytest.MonkeyPatch, change: dict[str, str | None], complaint: str):
    set_variables(monkeypatch, {**THERE, **change})
    check = torchrun.meeting_point if any(name in change for name in torchrun.ADDRESS) else torchrun.refuse_environment
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        check()


def test_programs_get_it_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    set_variables(monkeypatch, {**THERE, "RANK": "abc"})
    assert main(["list", "--json"]) == 2
    assert "got RANK=abc" in json.loads(capsys.readouterr().out)["error"]
    set_variables(monkeypatch, {"RANK": "1", "WORLD_SIZE": None})
    assert main(["list", "--json"]) == 0


def test_the_command_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    set_variables(monkeypatch, {**THERE, "RANK": "abc"})
    assert main(["list"]) == 2
    assert "got RANK=abc WORLD_SIZE=2" in complaint(capsys)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_whose_peers_never_come_says_so_and_ends_at_a_signal(tmp_path: Path, number: signal.Signals):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    waiting = subprocess.Popen(
        [sys.executable, "-m", "fedexp", *LONE],
        cwd=tmp_path,
        env={**os.environ, **THERE, "RANK": "0", "LOCAL_RANK": "0", "MASTER_PORT": port},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # in a background job of a shell Ctrl-C would be ignored
    )
    assert waiting.stdout is not None
    try:
        text = next(line for line in waiting.stdout if "meet at" in line)
        assert f"2 processes of torchrun meet at 127.0.0.1:{port}" in text
        time.sleep(1)  # until it waits in code that is not Python's
        waiting.send_signal(number)
        assert waiting.wait(timeout=20) == -number
    finally:
        waiting.kill()
        waiting.stdout.close()
