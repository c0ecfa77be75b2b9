"""Files of one's own, where the system itself cannot refuse to follow links."""

import os
from pathlib import Path

import pytest

from fedexp.core import own_files
from fedexp.core.errors import ConfigError


def test_a_link_is_refused_without_nofollow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "link.json").symlink_to(tmp_path / "mine.txt")
    monkeypatch.delattr(os, "O_NOFOLLOW")
    monkeypatch.setattr(own_files, "_SAFE", 0)
    with pytest.raises(ConfigError, match="must be a file of its own, but it is a link; remove it"):
        own_files.read_regular(tmp_path / "link.json", 10)
    assert own_files.read_regular(tmp_path / "mine.txt", 10) == b"mine"
