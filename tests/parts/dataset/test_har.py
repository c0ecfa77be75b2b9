import hashlib
import re
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
import torch
from people import people

from fedexp.core.errors import ConfigError
from fedexp.data import hapt
from fedexp.parts.dataset import har
from fedexp.parts.dataset.har import Har

RNG = np.random.default_rng(0)


def text(table):
    return "".join(" ".join(map(repr, row)) + "\n" for row in table.tolist()).encode()


@pytest.fixture
def recordings(monkeypatch):
    """Raw files of two recordings, of persons 1 (training) and 2 (test), and the list that knows them."""
    files = {"RawData/labels.txt": b"1 1 5 1 192\n1 1 7 193 300\n2 2 12 21 148\n"}
    for kind in ("acc", "gyro"):
        for number in (1, 2):
            files[f"RawData/{kind}_exp0{number}_user0{number}.txt"] = text(RNG.standard_normal((300, 3)))
    digests = {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()}
    monkeypatch.setattr(hapt, "published_digests", lambda: digests)
    monkeypatch.setattr(har, "SIZES", {"train": 2, "test": 1})
    return files


def as_folder(root, files):
    for name, raw in files.items():
        path = root / "HAPT" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


def as_tar(root, files):
    as_folder(root / "unpacked", files)
    (root / "HAPT").mkdir()
    with tarfile.open(root / "HAPT" / "RawData.tar.xz", "w:xz") as archive:
        archive.add(root / "unpacked" / "HAPT" / "RawData", "RawData")
    shutil.rmtree(root / "unpacked")


def as_zip(root, files, path="HAPT Data Set.zip", folder=""):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(root / path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in {"README.txt": b"x", **files}.items():
            archive.writestr(folder + name, raw)


def as_zip_in_a_folder(root, files):
    as_zip(root, files, f"HAPT/{hapt.ZIPS[0]}", "HAPT Data Set/")


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("lay", [as_folder, as_tar, as_zip, as_zip_in_a_folder])
def test_windows_wherever_the_recordings_lie(tmp_path, recordings, lay):
    lay(tmp_path, recordings)
    Har().require(tmp_path)
    data = Har().load(tmp_path, 0)
    acceleration = np.loadtxt(recordings["RawData/acc_exp01_user01.txt"].decode().splitlines())
    rotation = np.loadtxt(recordings["RawData/gyro_exp02_user02.txt"].decode().splitlines())
    assert data.train.x.shape == (2, 6, 128)
    assert data.train.x[1, 1].tolist() == pytest.approx(acceleration[64:192, 1].tolist(), abs=1e-6)
    assert data.test.x[0, 5].tolist() == pytest.approx(rotation[20:148, 2].tolist(), abs=1e-6)
    assert (data.train.y.tolist(), data.test.y.tolist()) == ([4, 4], [11])
    assert (people(data.train).tolist(), people(data.test).tolist()) == ([1, 1], [2])
    assert data.mean == pytest.approx(data.train.x.mean(dim=(0, 2)).tolist(), abs=1e-6)
    assert data.std == pytest.approx(data.train.x.std(dim=(0, 2), correction=0).tolist(), abs=1e-6)
    assert len(Har().verify(tmp_path)) == 1


def test_cache_is_used_and_made_again(tmp_path, recordings, own_cache):
    as_folder(tmp_path, recordings)
    first = Har().load(tmp_path, 0)
    (stored,) = own_cache.rglob("*.npz")
    before = stored.stat().st_mtime_ns
    Har().load(tmp_path, 0)
    assert stored.stat().st_mtime_ns == before
    stored.write_bytes(stored.read_bytes()[:-100])
    assert torch.equal(Har().load(tmp_path, 0).train.x, first.train.x)
    assert stored.stat().st_mtime_ns != before


@pytest.mark.usefixtures("own_cache")
def test_damaged_recording(tmp_path, recordings):
    as_folder(tmp_path, recordings)
    path = tmp_path / "HAPT" / "RawData" / "gyro_exp02_user02.txt"
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    Har().require(tmp_path)
    for read in (lambda: Har().load(tmp_path, 0), lambda: Har().verify(tmp_path)):
        with pytest.raises(ConfigError, match=r"gyro_exp02_user02.txt in .* is damaged: SHA-256 .*data download har"):
            read()


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("lay", "words"),
    [
        (as_tar, "RawData.tar.xz is not whole: it does not end like an xz file"),
        (as_zip, "HAPT Data Set.zip is not a complete zip archive"),
    ],
)
def test_damaged_archive(tmp_path, recordings, lay, words):
    lay(tmp_path, recordings)
    (archive,) = (path for path in tmp_path.rglob("*") if path.is_file())
    archive.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(ConfigError, match=words):
        Har().load(tmp_path, 0)


@pytest.mark.parametrize("lay", [as_tar, as_zip, as_zip_in_a_folder])
def test_an_archive_and_one_byte_is_another_archive(tmp_path, recordings, lay):
    lay(tmp_path, recordings)
    Har().require(tmp_path)
    (archive,) = (path for path in tmp_path.rglob("*") if path.is_file())
    archive.write_bytes(archive.read_bytes() + b"\0")
    with pytest.raises(ConfigError, match=rf"{re.escape(archive.name)} is not whole: .*run \"fedexp data download har"):
        Har().require(tmp_path)


def test_absent_recording_names_checksum_and_cure(tmp_path):
    with pytest.raises(ConfigError, match="75b2be56e5aaf0476cf7ecb6c53cc48093dafb490f98ec6f5ae21b466a32f97c") as caught:
        Har().require(tmp_path)
    assert "RawData/acc_exp01_user01.txt" in str(caught.value)
    assert "fedexp data download har" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_file_absent(tmp_path, recordings):
    as_folder(tmp_path, recordings)
    (tmp_path / "HAPT" / "RawData" / "acc_exp02_user02.txt").unlink()
    with pytest.raises(ConfigError, match=r"no RawData/acc_exp02_user02.txt \(SHA-256"):
        Har().require(tmp_path)


@pytest.mark.usefixtures("own_cache")
def test_download(tmp_path, recordings, monkeypatch, tree):
    as_zip(tmp_path, recordings, "mirror.zip")
    monkeypatch.setattr(har, "ARCHIVE", (tmp_path / "mirror.zip").as_uri())
    root = tmp_path / "root"
    Har().download(root)
    assert tree(root) == ["HAPT", f"HAPT/{hapt.ZIPS[0]}"]
    assert len(Har().load(root, 0).train.y) == 2


def test_download_of_other_recordings_leaves_nothing(tmp_path, recordings, monkeypatch):
    as_zip(tmp_path, recordings | {"RawData/labels.txt": b"1 1 5 1 192\n"}, "mirror.zip")
    monkeypatch.setattr(har, "ARCHIVE", (tmp_path / "mirror.zip").as_uri())
    with pytest.raises(ConfigError, match=r"labels.txt in .* is damaged"):
        Har().download(tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_download_cures_a_damaged_folder(tmp_path, recordings, monkeypatch):
    as_zip(tmp_path, recordings, "mirror.zip")
    monkeypatch.setattr(har, "ARCHIVE", (tmp_path / "mirror.zip").as_uri())
    as_folder(tmp_path / "root", recordings | {"RawData/labels.txt": b""})
    Har().download(tmp_path / "root")
    assert len(Har().verify(tmp_path / "root")) == 1


@pytest.fixture
def tables(monkeypatch):
    """Feature tables of three training windows and two test windows."""
    monkeypatch.setattr(har, "SIZES", {"train": 3, "test": 2})
    return {
        "Train/X_train.txt": text(RNG.uniform(-1, 1, (3, 561))),
        "Train/y_train.txt": b"1\n12\n5\n",
        "Train/subject_id_train.txt": b"1\n3\n30\n",
        "Test/X_test.txt": text(RNG.uniform(-1, 1, (2, 561))),
        "Test/y_test.txt": b"2\n3\n",
        "Test/subject_id_test.txt": b"2\n24\n",
    }


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("lay", [as_folder, as_zip])
def test_features(tmp_path, tables, lay):
    lay(tmp_path, tables)
    dataset = Har(representation="features")
    dataset.require(tmp_path)
    data = dataset.load(tmp_path, 0)
    assert data.train.x.shape == (3, *dataset.facts(tmp_path).shape)
    assert data.train.y.tolist() == [0, 11, 4]
    assert people(data.test).tolist() == [2, 24]
    first = list(map(float, tables["Test/X_test.txt"].split()[:561]))
    assert data.test.x[0].tolist() == pytest.approx(first, abs=1e-6)
    assert (data.mean, data.std) == ((0.0,), (1.0,))
    assert len(dataset.verify(tmp_path)) == 1


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("Train/y_train.txt", b"1\n2\n", "different numbers of rows: .*Train/y_train.txt 2"),
        ("Train/X_train.txt", b"1 2 3\n", "not a table of numbers in 561 columns"),
        ("Test/y_test.txt", b"1\nhello\n", "Test/y_test.txt is damaged"),
        ("Test/subject_id_test.txt", b"2\n1\n", "must be {'train': 3, 'test': 2}"),
    ],
)
def test_feature_tables_that_will_not_do(tmp_path, tables, name, content, words):
    as_folder(tmp_path, tables | {name: content})
    with pytest.raises(ConfigError, match=words):
        Har(representation="features").load(tmp_path, 0)


def test_absent_feature_tables(tmp_path):
    with pytest.raises(ConfigError, match=r"no Train/X_train.txt in .*data download har"):
        Har(representation="features").require(tmp_path)


def test_real_recordings(real):
    root = real(Har())
    data, facts = Har().load(root, 0), Har().facts(root)
    assert data.train.x.shape == (7767, 6, 128)
    assert data.test.x.shape == (3162, 6, 128)
    train, test = data.train.y.bincount(), data.test.y.bincount()
    assert train.tolist() == [1226, 1073, 987, 1293, 1423, 1413, 47, 23, 75, 60, 90, 57]
    assert test.tolist() == [496, 471, 420, 508, 556, 545, 23, 10, 32, 25, 49, 27]
    assert facts.subjects == len(people(data.train).unique())
    for split, name in ((data.train, "Train"), (data.test, "Test")):
        folder = root / "HAPT" / name
        if folder.is_dir():  # the published tables list the same windows in the same order
            assert split.y.tolist() == [
                int(word) - 1 for word in (folder / f"y_{name.lower()}.txt").read_text().split()
            ]
            listed = (folder / f"subject_id_{name.lower()}.txt").read_text().split()
            assert people(split).tolist() == list(map(int, listed))
