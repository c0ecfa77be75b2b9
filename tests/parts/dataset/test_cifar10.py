import hashlib
import pickle
import tarfile

import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.data.store import PublishedFile
from fedexp.parts.dataset import cifar10
from fedexp.parts.dataset.cifar10 import Cifar10


def batch_bytes(first):
    images = np.full((2, 3072), first, np.uint8)
    images[:, 0], images[:, 1024], images[:, 2048 + 33] = (
        1,
        2,
        3,
    )  # red, green: top left; blue: second row, second column
    return pickle.dumps({b"data": images, b"labels": [first, first + 1]}, protocol=3)


def known_of(path, raw):
    return PublishedFile(path, len(raw), hashlib.md5(raw).hexdigest())


@pytest.fixture
def source(monkeypatch, tmp_path):
    """A published archive of two training batches and one test batch of two images each."""
    files = {name: batch_bytes(2 * place) for place, name in enumerate(("one", "two", "test"))}
    known = {name: known_of(f"cifar-10-batches-py/{name}", raw) for name, raw in files.items()}
    folder = tmp_path / "pack" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    archive = tmp_path / "cifar.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder, "cifar-10-batches-py")
    monkeypatch.setattr(cifar10, "BATCH", 2)
    monkeypatch.setattr(cifar10, "TRAIN", (known["one"], known["two"]))
    monkeypatch.setattr(cifar10, "TEST", (known["test"],))
    monkeypatch.setattr(cifar10, "ARCHIVE", archive.as_uri())
    monkeypatch.setattr(cifar10, "ARCHIVE_MD5", hashlib.md5(archive.read_bytes()).hexdigest())
    return tmp_path / "root"


def test_download_then_load(source, tree):
    Cifar10().download(source)
    assert tree(source) == ["cifar-10-batches-py", *(f"cifar-10-batches-py/{name}" for name in ("one", "test", "two"))]
    assert len(Cifar10().verify(source)) == 3
    data = Cifar10().load(source, 0)
    assert data.train.x.shape == (4, 3, 32, 32)
    assert data.train.x.dtype == torch.uint8
    assert data.train.y.tolist() == [0, 1, 2, 3]
    assert data.test.y.tolist() == [4, 5]
    assert [int(data.test.x[0, 0, 0, 0]), int(data.test.x[0, 1, 0, 0]), int(data.test.x[0, 2, 1, 1])] == [1, 2, 3]


def test_download_cures_a_damaged_file(source):
    Cifar10().download(source)
    path = source / "cifar-10-batches-py" / "two"
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(ConfigError, match="two is damaged"):
        Cifar10().load(source, 0)
    Cifar10().download(source)
    Cifar10().load(source, 0)


def test_wrong_archive_leaves_nothing(source, monkeypatch):
    monkeypatch.setattr(cifar10, "ARCHIVE_MD5", "0" * 32)
    with pytest.raises(ConfigError, match="must be 0000"):
        Cifar10().download(source)
    assert not source.exists()


def test_archive_with_a_wrong_file_leaves_nothing(source, monkeypatch):
    known = cifar10.TRAIN[0]
    monkeypatch.setattr(cifar10, "TRAIN", (PublishedFile(known.path, known.size, "0" * 32),))
    with pytest.raises(ConfigError, match="must be 0000"):
        Cifar10().download(source)
    assert not source.exists()


class Program:
    def __reduce__(self):
        return (print, ("this must not run",))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pickle.dumps(Program(), protocol=2), "print is not allowed"),
        (
            pickle.dumps({b"data": np.zeros((3, 3072), np.uint8), b"labels": [0, 0, 0]}, protocol=3),
            r"images \(3, 3072\)",
        ),
        (pickle.dumps({b"labels": [0, 0]}, protocol=2), "data"),
        (b"\x80", "is not a batch"),
    ],
)
def test_pickles_that_are_no_batches(source, monkeypatch, capsys, content, words):
    Cifar10().download(source)
    (source / "cifar-10-batches-py" / "test").write_bytes(content)
    monkeypatch.setattr(cifar10, "TEST", (known_of("cifar-10-batches-py/test", content),))
    with pytest.raises(ConfigError, match=words):
        Cifar10().load(source, 0)
    assert capsys.readouterr().out == ""


def test_absent_file(tmp_path):
    with pytest.raises(
        ConfigError, match=r"cifar-10-batches-py/data_batch_1 .31,035,704 bytes, MD5 c99cafc1.*download"
    ):
        Cifar10().require(tmp_path)


def test_real_files(real):
    data = Cifar10().load(real(Cifar10()), 0)
    assert data.train.y.bincount().tolist() == [5000] * 10
    assert data.test.y.bincount().tolist() == [1000] * 10
    for channel, mean in enumerate(data.mean):
        assert float(data.train.x[:, channel].float().mean() / 255) == pytest.approx(mean, abs=1e-4)
