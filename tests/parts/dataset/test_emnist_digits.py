import gzip
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.data import vision
from fedexp.parts.dataset.emnist_digits import EmnistDigits

KEY = ("EMNIST", "digits")


def idx_bytes(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def upright():
    """Images as they should come out: a bright bar along the top row."""
    images = np.zeros((5, 28, 28), np.uint8)
    images[:, 0, :] = 200
    images[:, :, 0] += np.arange(5, dtype=np.uint8)[:, None]
    return images


@pytest.fixture
def source(monkeypatch, tmp_path, upright):
    """A folder of 5 + 5 images, stored transposed."""
    monkeypatch.setitem(vision.COLLECTIONS, KEY, replace(vision.COLLECTIONS[KEY], sizes=(5, 5)))
    raw = tmp_path / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    for stem, shape in vision.idx_shapes(vision.COLLECTIONS[KEY]).items():
        array = upright.transpose(0, 2, 1) if len(shape) == 3 else np.arange(5, dtype=np.uint8)
        (raw / f"{stem}.gz").write_bytes(gzip.compress(idx_bytes(np.ascontiguousarray(array))))
    return tmp_path


def test_published_sizes(tmp_path):
    facts = EmnistDigits().facts(tmp_path)
    assert (facts.shape, facts.classes, facts.train_size, facts.subjects) == ((1, 28, 28), 10, 240_000, None)


def test_orientation_is_fixed(source, upright):
    data = EmnistDigits().load(source, 0)
    assert data.train.x.dtype == torch.uint8
    assert np.array_equal(data.train.x[:, 0].numpy(), upright)
    assert data.train.x.is_contiguous()
    assert data.test.y.tolist() == [0, 1, 2, 3, 4]
    assert data.class_names == tuple("0123456789")


def test_decompressed_files_do(source):
    packed = EmnistDigits().load(source, 0)
    for path in (source / "EMNIST" / "raw").glob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert torch.equal(EmnistDigits().load(source, 0).train.x, packed.train.x)


def test_absent_file(tmp_path):
    with pytest.raises(ConfigError, match=r"no EMNIST/raw/emnist-digits-train-images-idx3-ubyte\.gz") as caught:
        EmnistDigits().require(tmp_path)
    assert "58c8d27c78d21e728a6bc7b3cc06412e" in str(caught.value)
    assert "fedexp data download emnist_digits" in str(caught.value)


def test_damaged_files(source):
    assert "is readable to its end and holds 5 entries" in EmnistDigits().verify(source)[0]
    path = source / "EMNIST" / "raw" / "emnist-digits-train-images-idx3-ubyte.gz"
    raw = path.read_bytes()
    path.write_bytes(raw[:-10])
    with pytest.raises(ConfigError, match="must hold 3,936"):
        EmnistDigits().require(source)
    path.write_bytes(raw[:20] + bytes([raw[20] ^ 255]) + raw[21:])
    for read in (EmnistDigits().verify, lambda folder: EmnistDigits().load(folder, 0)):
        with pytest.raises(ConfigError, match="is damaged"):
            read(source)


def test_real_files(real):
    data = EmnistDigits().load(real(EmnistDigits()), 0)
    assert data.train.y.bincount().tolist() == [24_000] * 10
    assert data.test.y.bincount().tolist() == [4_000] * 10
