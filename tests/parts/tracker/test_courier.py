"""The run's side of a tracker: how a run ended, and a sender that cannot be started."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedexp.parts.tracker import courier, memo


@pytest.mark.parametrize(
    ("error", "status"),
    [(None, "FINISHED"), (ValueError, "FAILED"), (KeyboardInterrupt, "KILLED"), (SystemExit, "FAILED")],
)
def test_how_a_run_ended(error: type[BaseException] | None, status: str):
    assert courier.status(error) == status


def test_a_sender_that_cannot_be_started_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(courier.sys, "executable", str(tmp_path / "nothing"))
    (tmp_path / "metrics.csv").write_text("round,test_loss\n1,0.5\n2,0.25\n")
    messenger = courier.ProcessClient("mlflow", tmp_path, {}, 1.0)
    messenger.listen()
    messenger.close(None)
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        f"mlflow: cannot be started: [Errno 2] No such file or directory: '{tmp_path / 'nothing'}'",
        "mlflow: rounds 1 to 2 did not arrive",
    ]


SLOW = """
import dataclasses, pathlib, sys, time
from fedexp.parts.tracker import memo
folder = pathlib.Path(sys.argv[1])
for number in range(1, int(sys.argv[2]) + 1):
    for _ in range(5 * (sys.argv[3] == "prepares" and number == 2)):
        time.sleep(0.25)
        memo.show_progress(folder)
    time.sleep(0.25)
    memo.save(folder, dataclasses.replace(memo.load(folder, "slow"), round=number))
time.sleep(60 * (sys.argv[3] == "hangs"))
"""


@pytest.mark.parametrize(
    ("end", "complaint"),
    [
        ("ends", []),
        ("prepares", []),
        ("hangs", ["no answer within tracker.patience_s=0.6", "whether all has arrived is not known"]),
    ],
)
def test_a_backlog_is_waited_for_as_long_as_some_of_it_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, end: str, complaint: list[str]
):
    def start(_: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", SLOW, str(tmp_path), "6", end]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        while memo.load(tmp_path, "slow").round == 0:  # Python takes a while to start
            time.sleep(0.02)
        return process

    caplog.set_level(logging.INFO)
    monkeypatch.setattr(courier, "_start", start)
    (tmp_path / memo.LOCK).touch()
    (tmp_path / "metrics.csv").write_text("round,test_loss\n" + "".join(f"{number},0.5\n" for number in range(1, 7)))
    courier.ProcessClient("slow", tmp_path, {}, 0.6).close(None)
    told = [record.message.removeprefix("slow: ").partition(";")[0] for record in caplog.records]
    assert told == complaint, "no round is missing"
