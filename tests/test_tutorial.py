"""The tutorial, typed as it stands, from the first command to the table."""

import shlex
from pathlib import Path

import pytest
from pages import HOUSE, commands

from fedexp import cli


def test_every_command_of_the_tutorial_works_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    typed = [shlex.split(command) for command in commands(HOUSE / "docs" / "tutorial.md")]
    assert [words[1] for words in typed if len(words) > 2] == ["run", "plan", "contest", "compare", "report", "verify"]
    for _, *words in typed:
        if len(words) > 1:  # what is named in a sentence has no words
            assert cli.main(words) == 0, words
    assert "toprule" in Path("table", "results.tex").read_text()
    assert "Sensitivity" in Path("contest", "contest.md").read_text()
