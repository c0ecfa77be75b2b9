"""How a trial is scored."""

from pathlib import Path

import pytest

from fedexp.core.errors import RunError
from fedexp.search import trial


def test_a_run_that_explodes_at_its_end_does_not_score_by_an_earlier_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lines = ["round,validation_loss,validation_perplexity", "1,3.0,20.0", "2,2.0,8.0"]
    monkeypatch.setattr(trial, "complete", lambda *_: (tmp_path / "metrics.csv").write_text("\n".join(lines) + "\n"))
    assert trial.score({}, tmp_path, None) == 8
    lines.append("3,,")
    with pytest.raises(RunError, match="the last round has no validation perplexity, or an infinite one"):
        trial.score({}, tmp_path, None)
