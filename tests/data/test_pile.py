import tempfile
from pathlib import Path

import numpy as np
import pytest

from fedexp.core.errors import ConfigError
from fedexp.data import npy_header
from fedexp.data.pile import SpillBuffer


def piled(*pieces):
    with SpillBuffer() as pile:
        for piece in pieces:
            pile.add(np.array(piece, np.float32))
        return pile.to_array()


@pytest.mark.parametrize("large", [2**28, 20, 1])
def test_pieces_lie_on_one_another_in_memory_or_in_a_file(own_cache, monkeypatch, large):
    monkeypatch.setattr(npy_header, "LARGE", large)
    whole = piled([[1, 2]], np.zeros((0, 2)), [[3, 4], [5, 6]], np.array([[8, 7]])[:, ::-1])
    assert whole.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert whole.dtype == np.float32
    assert isinstance(whole, np.memmap) == (large < 2**28)
    whole[0] = 9  # in this process alone
    assert list(own_cache.rglob("*.*")) == []


def test_where_the_cache_cannot_be_made_the_file_is_elsewhere(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("a file where a folder is needed")
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(npy_header, "LARGE", 1)
    assert piled([[1]], [[2]]).tolist() == [[1], [2]]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk is full here")
@pytest.mark.usefixtures("own_cache")
def test_a_full_disk_is_one_line(monkeypatch):
    monkeypatch.setattr(npy_header, "LARGE", 1)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: Path("/dev/full").open("wb", 0))  # noqa: SIM115
    with pytest.raises(
        ConfigError, match=r"own-cache/parsed must have room for the parsed examples, but: No space left"
    ):
        piled([[1]])
