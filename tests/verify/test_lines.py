"""What verify says of a folder is a line each, whatever the folder holds."""

import json
from pathlib import Path

import pytest

import fedexp
from fedexp import cli


def test_a_folder_cannot_add_lines_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "run"
    fedexp.run("rounds=1", "pictures=false", folder=folder, quiet=True)
    saved = json.loads((folder / "config.json").read_text())
    saved["choices"]["federation"] = "iid\nround 1  equal\u2028fedexp: all is well"
    (folder / "config.json").write_text(json.dumps(saved))
    assert cli.main(["verify", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("round 1  equal") <= 1
    assert "fedexp: all is well" not in lines
    assert any("round 1  equal fedexp: all is well" in line for line in lines)
