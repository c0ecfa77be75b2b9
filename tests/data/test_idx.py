import gzip

import pytest

from fedexp.core.errors import ConfigError
from fedexp.data import idx


def test_no_more_is_unpacked_than_the_array_has(tmp_path):
    path = tmp_path / "images.gz"
    head = b"\0\0\x08\1" + (5).to_bytes(4)
    path.write_bytes(gzip.compress(head + bytes(5)))
    assert idx.read(path, (5,), "cure").tolist() == [0] * 5
    path.write_bytes(gzip.compress(head + bytes(6)))
    with pytest.raises(ConfigError, match=r"images.gz is damaged: it holds more than 13 bytes; cure"):
        idx.read(path, (5,), "cure")
    path.write_bytes(gzip.compress(b"\0\0\x08\1" + (9).to_bytes(4) + b"abc"))
    with pytest.raises(ConfigError, match=r"images.gz is damaged: 3 bytes do not make an array of shape \(9,\); cure"):
        idx.read(path, (5,), "cure")


def test_a_file_that_was_cut_off_is_said_to_be(tmp_path):
    (tmp_path / "raw").mkdir()
    path, content = tmp_path / "raw" / "images.gz", gzip.compress(b"\0\0\x08\1" + (5).to_bytes(4) + bytes(range(5)))
    path.write_bytes(content)
    assert idx.find_file(tmp_path, "raw", "images", (5,), "cure") == path
    path.write_bytes(content[:-6])
    with pytest.raises(ConfigError, match=r"images.gz is cut off, or another file: .* must hold 13 \(cure"):
        idx.find_file(tmp_path, "raw", "images", (5,), "cure")
    path.unlink()
    (tmp_path / "raw" / "images").write_bytes(b"12345")
    with pytest.raises(ConfigError, match=r"raw/images holds 5 bytes, must hold 13"):
        idx.find_file(tmp_path, "raw", "images", (5,), "cure")
