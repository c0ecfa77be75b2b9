import json
from pathlib import Path

import pytest

from fedexp.core.errors import ConfigError
from fedexp.files import summary_json
from fedexp.files.untrusted_json import MAX_DEPTH


def test_what_a_run_writes_is_read(tmp_path: Path):
    told = {
        "final_accuracy": 1,
        "best_own": None,
        "own_auc": 0.5,
        "roa": {"0.5": 3, "0.9": None},
        "git": None,
        "engine": {"name": "loop", "workers": 2},
    }
    (tmp_path / "summary.json").write_text(json.dumps(told))
    assert summary_json.read(tmp_path) == told
    (tmp_path / "summary.json").unlink()
    assert summary_json.read(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "cannot be read as JSON: "),
        ("[" * 100_000, f"must be at most {MAX_DEPTH} levels deep; is it damaged?"),
        ("\ufeff{}", "cannot be read as JSON: "),
        ('{"loss_auc": NaN}', "cannot be read as JSON: NaN is not a JSON number"),
        ("[1]", "must hold a mapping, got "),
        ('{"loss_auc": "1"}', "must have a number as loss_auc, got '1'"),
        ('{"loss_auc": 1e999}', "must have a number as loss_auc, got inf"),
        ('{"rounds": true}', "must have a whole number as rounds, got True"),
        ('{"clients": -1}', "must have a whole number as clients, got -1"),
        ('{"device": 3}', "must have a text as device, got 3"),
        ('{"roa": {"0.9": "early"}}', "must have a number as roa.0.9, got 'early'"),
        ('{"versions": {"torch": 2}}', "must have a text as versions.torch, got 2"),
        ('{"git": {"commit": 7}}', "must have a text as git.commit, got 7"),
        ('{"final_rmse": "abc"}', "must have a number as final_rmse, got 'abc'"),
        ('{"best_rmse": [1]}', "must have a number as best_rmse, got [1]"),
        ('{"rmse_auc": true}', "must have a number as rmse_auc, got True"),
        ('{"final_": 1}', "must have names of letters, digits and _, got 'final_'"),
        ('{"final_a\\nb": 1}', "must have names of letters, digits and _, got 'final_a\\nb'"),
        ('{"<b>_auc": 1}', "must have names of letters, digits and _, got '<b>_auc'"),
        ('{"git": "dirty"}', "must have a mapping as git, got 'dirty'"),
    ],
)
def test_what_no_run_writes_is_refused_in_one_line(tmp_path: Path, content: str, complaint: str):
    (tmp_path / "summary.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        summary_json.read(tmp_path)
    assert complaint in str(refused.value)
    assert str(refused.value).endswith("is it damaged?")
