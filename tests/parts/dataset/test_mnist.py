import gzip
import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.data import vision
from fedexp.parts.dataset import mnist
from fedexp.parts.dataset.mnist import Mnist


def idx_bytes(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture(params=[".gz", ""])
def root(request, monkeypatch, tmp_path):
    """A folder with files of 6 + 3 images, compressed or not, that are the published ones."""
    monkeypatch.setitem(vision.COLLECTIONS, ("MNIST", None), replace(vision.COLLECTIONS["MNIST", None], sizes=(6, 3)))
    rng, raw = np.random.default_rng(0), tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part, size in {"train": 6, "t10k": 3}.items():
        images, labels = rng.integers(0, 256, (size, 28, 28), np.uint8), np.arange(size, dtype=np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            content = idx_bytes(array)
            path = raw / f"{part}-{kind}-ubyte{request.param}"
            path.write_bytes(gzip.compress(content, mtime=0) if request.param else content)
            digest = hashlib.md5(path.read_bytes()).hexdigest()
            monkeypatch.setitem(mnist.DIGESTS, f"MNIST/raw/{path.name}", digest)
    return tmp_path


def test_reads_made_files(root):
    Mnist().require(root)
    data = Mnist().load(root, 0)
    assert data.train.x.shape == (6, 1, 28, 28)
    assert data.train.x.dtype == torch.uint8
    assert data.test.y.tolist() == [0, 1, 2]
    assert np.array_equal(data.train.x[:, 0], np.random.default_rng(0).integers(0, 256, (6, 28, 28), np.uint8))
    assert Mnist().facts(root).train_size == len(data.train.y)
    assert all("is right" in line for line in Mnist().verify(root))


def test_a_damaged_file_is_told_by_its_checksum(root):
    (path,) = (root / "MNIST" / "raw").glob("t10k-images*")
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)
    Mnist().require(root)  # the size is right
    for read in (Mnist().verify, lambda folder: Mnist().load(folder, 0)):
        with pytest.raises(ConfigError, match=r"t10k-images.* is damaged: MD5 .*fedexp data download mnist"):
            read(root)


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
