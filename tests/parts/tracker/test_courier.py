"""The run's side of a tracker: how a run ended, and a sender that cannot be started."""

from pathlib import Path

import pytest

from fedexp.parts.tracker import courier


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
    messenger = courier.Messenger("mlflow", tmp_path, {}, 1.0)
    messenger.listen()
    messenger.close(None)
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        f"mlflow: cannot be started: [Errno 2] No such file or directory: '{tmp_path / 'nothing'}'",
        "mlflow: rounds 1 to 2 did not arrive",
    ]
