"""Points in joblib's processes."""

import os
from pathlib import Path

import pytest
import torch

from fedexp.sweep.launchers.contract import PointEnd
from fedexp.sweep.launchers.joblib import Joblib


def tell_gpu(folder: Path) -> PointEnd:
    return PointEnd(folder, 0, os.environ["LOCAL_RANK"])


@pytest.mark.parametrize(
    ("gpus", "chosen", "numbers"),
    [(0, None, ["0", "0", "0"]), (2, None, ["0", "1", "0"]), (4, None, ["0", "1", "2"]), (4, "3", ["3", "3", "3"])],
)
def test_points_are_spread_over_the_gpus(
    gpus: int, chosen: str | None, numbers: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if chosen is not None:
        monkeypatch.setenv("LOCAL_RANK", chosen)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    ends = list(Joblib(jobs=3).launch(iter(Path(name) for name in "abc"), tell_gpu))
    assert [end.message for end in sorted(ends, key=lambda end: end.folder)] == numbers


def test_one_job_leaves_the_variable_as_it_was(monkeypatch: pytest.MonkeyPatch):
    """It runs in the process of the sweep, whose next one would take it for the user's choice."""
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    (end,) = Joblib(jobs=1).launch(iter([Path("a")]), tell_gpu)
    assert end.message == "0"
    assert "LOCAL_RANK" not in os.environ
