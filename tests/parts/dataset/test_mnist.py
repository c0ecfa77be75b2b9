import gzip
import hashlib
import struct

import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.data.store import PublishedFile
from fedexp.parts.dataset import mnist
from fedexp.parts.dataset.mnist import Mnist


def idx_bytes(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def known_of(path, raw):
    return PublishedFile(path, len(raw), hashlib.md5(raw).hexdigest())


@pytest.fixture
def source(monkeypatch, tmp_path):
    """Published files of 6 + 3 images on a mirror, and the table that knows them."""
    rng = np.random.default_rng(0)
    table = {}
    for split, size in {"train": 6, "test": 3}.items():
        arrays = {"x": rng.integers(0, 256, (size, 28, 28), np.uint8), "y": np.arange(size, dtype=np.uint8)}
        for kind, array in arrays.items():
            plain, name = idx_bytes(array), f"{split}-{kind}"
            packed = gzip.compress(plain, mtime=0)
            table[f"{split}_{kind}"] = (known_of(f"raw/{name}.gz", packed), known_of(f"raw/{name}", plain))
            (tmp_path / f"{name}.gz").write_bytes(packed)
            (tmp_path / name).write_bytes(plain)
    monkeypatch.setattr(mnist, "FILES", table)
    monkeypatch.setattr(mnist, "TRAIN_SIZE", 6)
    monkeypatch.setattr(mnist, "MIRRORS", (f"{tmp_path.as_uri()}/",))
    return tmp_path


@pytest.mark.parametrize("ending", [".gz", ""])
def test_reads_made_files_compressed_or_not(source, ending):
    root = source / "root"
    (root / "raw").mkdir(parents=True)
    for name in ("train-x", "train-y", "test-x", "test-y"):
        (root / "raw" / f"{name}{ending}").write_bytes((source / f"{name}{ending}").read_bytes())
    Mnist().require(root)
    data = Mnist().load(root, 0)
    assert data.train.x.shape == (6, 1, 28, 28)
    assert data.train.x.dtype == torch.uint8
    assert data.test.y.tolist() == [0, 1, 2]
    assert data.train.x.numpy().tobytes() == (source / "train-x").read_bytes()[16:]
    assert Mnist().facts(root).train_size == len(data.train.y)


def test_download_then_load(source, tree):
    root = source / "root"
    Mnist().download(root)
    assert tree(root) == ["raw", *(f"raw/{name}.gz" for name in ("test-x", "test-y", "train-x", "train-y"))]
    assert len(Mnist().verify(root)) == 4
    assert len(Mnist().load(root, 0).test.y) == 3


def test_download_cures_one_damaged_file(source):
    root = source / "root"
    Mnist().download(root)
    path = root / "raw" / "test-x.gz"
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)
    Mnist().require(root)  # the size is right
    with pytest.raises(ConfigError, match=r"test-x.gz is damaged: MD5 .*fedexp data download mnist"):
        Mnist().load(root, 0)
    with pytest.raises(ConfigError, match="is damaged"):
        Mnist().verify(root)
    Mnist().download(root)
    Mnist().load(root, 0)


def test_file_that_is_no_idx_file(source, monkeypatch):
    root = source / "root"
    Mnist().download(root)
    path = root / "raw" / "test-y.gz"
    path.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x09abc"))
    monkeypatch.setitem(mnist.FILES, "test_y", (known_of("raw/test-y.gz", path.read_bytes()),))
    with pytest.raises(ConfigError, match=r"test-y.gz is damaged: 3 bytes do not make an array of shape \(9,\)"):
        Mnist().load(root, 0)


def test_absent_file_names_checksum_and_cure(tmp_path):
    with pytest.raises(ConfigError, match="f68b3c2dcbeaaa9fbdd348bbdeb94873") as caught:
        Mnist().require(tmp_path)
    text = str(caught.value)
    assert "\n" not in text
    assert "MNIST/raw/train-images-idx3-ubyte.gz" in text
    assert "fedexp data download mnist" in text
    assert "FEDEXP_DATA" in text


def test_real_files(real):
    root = real(Mnist())
    data = Mnist().load(root, 0)
    assert data.train.x.shape == (60_000, 1, 28, 28)
    assert data.train.y.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert data.test.y.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert float(data.train.x.float().mean() / 255) == pytest.approx(0.1307, abs=1e-4)
    assert (data.scale, data.mean, data.std) == (255.0, (0.5,), (0.5,))
