import io
import struct
import zipfile

import numpy as np
import pytest

from fedexp.core.errors import ConfigError
from fedexp.data.npy_header import headers, read, verify_checksums


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


PLAIN = saved(np.arange(6).reshape(2, 3))


def put(folder, raw=PLAIN, how=zipfile.ZIP_STORED):
    with zipfile.ZipFile(folder / "own.npz", "w", how) as archive:
        archive.writestr("x.npy", raw)
    return folder / "own.npz"


def changed(path, place, value):
    """The file with two bytes changed in what the archive says of its entry, in both places where it says it."""
    raw = bytearray(path.read_bytes())
    for start, offset in ((raw.index(b"PK\3\4"), 6), (raw.index(b"PK\1\2"), 8)):
        struct.pack_into("<H", raw, start + offset + place, value)
    path.write_bytes(raw)


def test_an_array_and_what_is_said_of_it(tmp_path):
    path = put(tmp_path)
    assert headers(path)["x"].shape == (2, 3)
    assert read(path, "x").tolist() == [[0, 1, 2], [3, 4, 5]]
    verify_checksums(path)


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_in_any_compression_is_one_line(tmp_path, how):
    path = put(tmp_path, saved(np.random.default_rng(0).random(500)), how)
    raw = bytearray(path.read_bytes())
    raw[50:900] = bytes(byte ^ 255 for byte in raw[50:900])
    path.write_bytes(raw)
    for what in (lambda: headers(path), lambda: read(path, "x"), lambda: verify_checksums(path)):
        with pytest.raises(ConfigError, match=r"own.npz (cannot be read|is damaged).*; write it again with np.savez"):
            what()


@pytest.mark.parametrize(("place", "value", "words"), [(0, 1, "encrypted"), (2, 77, "compression")])
def test_what_the_archive_cannot_give_is_told(tmp_path, place, value, words):
    path = put(tmp_path)
    changed(path, place, value)
    for what in (lambda: headers(path), lambda: read(path, "x"), lambda: verify_checksums(path)):
        with pytest.raises(ConfigError, match=words):
            what()


@pytest.mark.parametrize("shape", [b"(2, 99999999999)", b"(2, -3)", b"(2, 4)", b"((((2, 3", b"(2, [3])"])
def test_a_header_that_is_not_of_what_follows_is_refused(tmp_path, shape):
    header = PLAIN.replace(b"(2, 3), }" + b" " * 20, (shape + b", }").ljust(29))
    assert header != PLAIN
    with pytest.raises(ConfigError, match=r"own.npz cannot be read as a .npz file: .") as caught:
        headers(put(tmp_path, header))
    assert "\n" not in str(caught.value)


def test_objects_are_looked_at_but_never_made(tmp_path):
    path = tmp_path / "own.npz"
    np.savez(path, x=np.array([{}], object))
    assert headers(path)["x"].dtype.hasobject
    with pytest.raises(ConfigError, match=r"x in .* cannot be read"):
        read(path, "x")


@pytest.mark.parametrize("other", ["x.npy", "x"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(tmp_path, other):
    path = put(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(other, saved(np.zeros((2, 3))))
    with pytest.raises(ConfigError, match=r"own.npz cannot be read as a .npz file: it holds several arrays named x; "):
        headers(path)
