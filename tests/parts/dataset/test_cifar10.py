import hashlib
import pickle
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch
from torchvision import datasets

from fedexp.core.errors import ConfigError
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


def put(folder, monkeypatch, contents):
    """Writes files, and makes them the published ones."""
    digests = {f"cifar-10-batches-py/{name}": hashlib.md5(raw).hexdigest() for name, raw in contents.items()}
    monkeypatch.setattr(cifar10, "DIGESTS", digests)
    (folder / "cifar-10-batches-py").mkdir(exist_ok=True)
    for name, raw in contents.items():
        (folder / "cifar-10-batches-py" / name).write_bytes(raw)


@pytest.fixture
def source(monkeypatch, tmp_path):
    """Two training batches and one test batch of two images each."""
    monkeypatch.setattr(cifar10, "BATCH", 2)
    put(tmp_path, monkeypatch, {name: batch_bytes(2 * place) for place, name in enumerate(("one", "two", "test"))})
    return tmp_path


def test_reads_made_files(source):
    assert len(Cifar10().verify(source)) == 3
    data = Cifar10().load(source, 0)
    assert data.train.x.shape == (4, 3, 32, 32)
    assert data.train.x.dtype == torch.uint8
    assert data.train.y.tolist() == [0, 1, 2, 3]
    assert data.test.y.tolist() == [4, 5]
    assert [int(data.test.x[0, 0, 0, 0]), int(data.test.x[0, 1, 0, 0]), int(data.test.x[0, 2, 1, 1])] == [1, 2, 3]


def test_a_damaged_file_is_told_by_its_checksum(source):
    path = source / "cifar-10-batches-py" / "two"
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(ConfigError, match=r"two is damaged: MD5 .*fedexp data download cifar10"):
        Cifar10().load(source, 0)


def test_a_download_keeps_the_batches_only(source, tmp_path, monkeypatch, tree):
    mirror, root = source / "cifar-10-batches-py", tmp_path / "root"

    def fetch(_, folder, **__):
        copytree(mirror, Path(folder) / mirror.name, dirs_exist_ok=True)

    (mirror / "batches.meta").write_bytes(b"names")
    monkeypatch.setattr(datasets.CIFAR10, "__init__", fetch)
    Cifar10().download(root)
    assert tree(root) == ["cifar-10-batches-py", *(f"cifar-10-batches-py/{name}" for name in ("one", "test", "two"))]


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
    put(source, monkeypatch, {"one": batch_bytes(0), "test": content})
    with pytest.raises(ConfigError, match=words):
        Cifar10().load(source, 0)
    assert capsys.readouterr().out == ""


def test_absent_file(tmp_path):
    with pytest.raises(ConfigError, match=r"no cifar-10-batches-py/data_batch_1 .MD5 c99cafc1.*download cifar10"):
        Cifar10().require(tmp_path)


def test_real_files(real):
    data = Cifar10().load(real(Cifar10()), 0)
    assert data.train.y.bincount().tolist() == [5000] * 10
    assert data.test.y.bincount().tolist() == [1000] * 10
    for channel, mean in enumerate(data.mean):
        assert float(data.train.x[:, channel].float().mean() / 255) == pytest.approx(mean, abs=1e-4)
