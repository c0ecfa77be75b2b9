"""The error of a run, as its traceback tells it; one that the run has survived is of the past."""

from pathlib import Path

import pytest

from fedexp.files.failure import read_failure

METRICS = "round,participants,aggregator.dropped\n1,2,{}\n2,2,2\n"


@pytest.mark.parametrize(
    ("summary", "dropped", "failed"), [(False, 0, True), (True, 0, False), (True, 2, True), (False, 2, True)]
)
def test_what_ended_a_run(tmp_path: Path, summary: bool, dropped: int, failed: bool):
    assert read_failure(tmp_path) is None
    (tmp_path / "traceback.txt").write_text("Traceback\n  ...\nfedexp.core.errors.RunError: no space left\n")
    (tmp_path / "metrics.csv").write_text(METRICS.format(dropped))
    if summary:
        (tmp_path / "summary.json").write_text("{}")
    assert read_failure(tmp_path) == ("no space left" if failed else None)
