import lzma
import zipfile

import pytest

from fedexp.core.errors import ConfigError
from fedexp.data import archive_ends
from fedexp.data.members import members, present

RAW = bytes(range(256)) * 40


@pytest.fixture(params=["a.zip", "a.tar.xz"])
def archive(tmp_path, request):
    path = tmp_path / request.param
    if path.suffix == ".xz":
        path.write_bytes(lzma.compress(RAW))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.comment = b"of somebody"
            file.writestr("a", RAW)
    return path


def test_a_whole_archive_passes_until_it_unpacks_to_too_much(archive, monkeypatch):
    archive_ends.demand_complete(archive)
    assert present(archive, ["a"]) == {"a"}
    monkeypatch.setattr(archive_ends, "MAX_BYTES", len(RAW))
    archive_ends.demand_complete(archive)
    monkeypatch.setattr(archive_ends, "MAX_BYTES", len(RAW) - 1)
    with pytest.raises(ConfigError, match=r"is damaged: it holds more than 10,239 bytes"):
        list(members(archive, ["a"]))


@pytest.mark.parametrize(("before", "behind"), [(b"", b"\0"), (b"", b"x"), (b"\0", b""), (b"", None), (b"", b"\0" * 4)])
def test_bytes_before_or_behind_it_are_refused(archive, before, behind):
    whole = archive.read_bytes()
    archive.write_bytes(before + whole + (whole[-12:] if behind is None else behind))
    assert present(archive, ["a"]) == set()
    with pytest.raises(ConfigError, match=r"is damaged: (there are bytes before|it does not end like|its index)"):
        list(members(archive, ["a"]))


def test_blocks_of_any_number_are_counted(tmp_path):
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(b""))  # none
    archive_ends.demand_complete(path)
    path.write_bytes(lzma.compress(bytes(3_000_000)))
    archive_ends.demand_complete(path)
    for length in range(4, 60, 4):
        path.write_bytes(lzma.compress(RAW)[-length:])
        with pytest.raises(lzma.LZMAError):
            archive_ends.demand_complete(path)
