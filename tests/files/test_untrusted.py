"""Files of one's own, where the system itself cannot refuse to follow links."""

import os
from pathlib import Path

import pytest

from fedexp.core.errors import ConfigError
from fedexp.files import untrusted


def test_a_link_is_refused_without_nofollow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "link.json").symlink_to(tmp_path / "mine.txt")
    monkeypatch.delattr(os, "O_NOFOLLOW")
    monkeypatch.setattr(untrusted, "_SAFE", 0)
    with pytest.raises(ConfigError, match="must be a file of its own, but it is a link; remove it"):
        untrusted.read_regular(tmp_path / "link.json", 10)
    assert untrusted.read_regular(tmp_path / "mine.txt", 10) == b"mine"
