import bz2
import gzip
import hashlib
import pickle
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.io import savemat
from torchvision import datasets

from fedexp.core.errors import ConfigError
from fedexp.data import vision
from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.cifar10 import Cifar10
from fedexp.parts.dataset.mnist import Mnist
from fedexp.parts.dataset.torchvision import Torchvision

RNG = np.random.default_rng(0)
SIZES = (6, 3)


def md5(raw: bytes) -> str:
    return hashlib.md5(raw).hexdigest()


def idx_bytes(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def put(path: Path, raw: bytes) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return raw


@pytest.fixture
def _small(monkeypatch):
    """Collections of 6 + 3 images."""
    for key, one in vision.COLLECTIONS.items():
        monkeypatch.setitem(vision.COLLECTIONS, key, replace(one, sizes=SIZES))


def loaded(dataset, root):
    """The data, if it is what its facts say."""
    dataset.require(root)
    data = dataset.load(root, 0)
    check_data.refuse(dataset, dataset.facts(root), data)
    return data


def fashion(root, monkeypatch, ending=".gz"):
    images, listed = RNG.integers(0, 256, (9, 28, 28), np.uint8), []
    labels = np.arange(9, dtype=np.uint8)
    for part, chosen in (("train", slice(0, 6)), ("t10k", slice(6, 9))):
        for kind, array in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            plain = idx_bytes(array[chosen])
            raw = gzip.compress(plain, mtime=0) if ending else plain
            listed.append((f"{kind}.gz", md5(put(root / "FashionMNIST" / "raw" / f"{kind}{ending}", raw))))
    monkeypatch.setattr(datasets.FashionMNIST, "resources", listed)
    return images


@pytest.mark.parametrize("ending", [".gz", ""])
@pytest.mark.usefixtures("_small")
def test_idx_files_compressed_or_not(tmp_path, monkeypatch, ending):
    images = fashion(tmp_path, monkeypatch, ending)
    data = loaded(Torchvision(name="FashionMNIST"), tmp_path)
    assert np.array_equal(data.train.x[:, 0].numpy(), images[:6])
    assert data.test.y.tolist() == [6, 7, 8]
    assert data.class_names[9] == "Ankle boot"
    assert (data.mean, data.std) == ((0.5,), (0.5,))
    assert ("is right" if ending else "is readable to its end") in Torchvision(name="FashionMNIST").verify(tmp_path)[0]


@pytest.mark.usefixtures("_small")
def test_a_damaged_archive_is_told_by_its_checksum(tmp_path, monkeypatch):
    fashion(tmp_path, monkeypatch)
    path = tmp_path / "FashionMNIST" / "raw" / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(idx_bytes(np.zeros(3, np.uint8)), mtime=0))
    with pytest.raises(ConfigError, match=r"is damaged: MD5 .*download torchvision dataset.name=FashionMNIST"):
        Torchvision(name="FashionMNIST").load(tmp_path, 0)


@pytest.mark.usefixtures("_small")
def test_emnist_is_put_upright_and_its_letters_count_from_0(tmp_path):
    images = np.zeros((6, 28, 28), np.uint8)
    images[:, 0, :] = 200  # a bar along the top
    for part, size in zip(("train", "test"), SIZES, strict=True):
        for kind, array in (("images-idx3", images.transpose(0, 2, 1)), ("labels-idx1", np.arange(6) + 1)):
            plain = idx_bytes(np.ascontiguousarray(array[:size]).astype(np.uint8))
            put(tmp_path / "EMNIST" / "raw" / f"emnist-letters-{part}-{kind}-ubyte.gz", gzip.compress(plain))
    data = loaded(Torchvision(name="EMNIST", split="letters"), tmp_path)
    assert np.array_equal(data.test.x[0, 0].numpy(), images[0])
    assert data.train.y.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.class_names[:3] == ("a", "b", "c")


def cifar100(root, monkeypatch):
    images = RNG.integers(0, 256, (9, 3072), np.uint8)
    names = [f"class{number}" for number in range(100)]
    batches = {
        "train": {"data": images[:6], "fine_labels": [5, 99, 0, 1, 2, 3]},
        "test": {"data": images[6:], "fine_labels": [7, 8, 9]},
        "meta": {"fine_label_names": names},
    }
    sums = {name: md5(put(root / "cifar-100-python" / name, pickle.dumps(batch))) for name, batch in batches.items()}
    monkeypatch.setattr(datasets.CIFAR100, "train_list", [["train", sums["train"]]])
    monkeypatch.setattr(datasets.CIFAR100, "test_list", [["test", sums["test"]]])
    monkeypatch.setattr(datasets.CIFAR100, "meta", datasets.CIFAR100.meta | {"md5": sums["meta"]})
    return images


@pytest.mark.usefixtures("_small")
def test_pickles_of_cifar100(tmp_path, monkeypatch):
    images = cifar100(tmp_path, monkeypatch)
    data = loaded(Torchvision(name="CIFAR100", normalise="per_channel"), tmp_path)
    assert np.array_equal(data.train.x.numpy(), images[:6].reshape(6, 3, 32, 32))
    assert data.test.y.tolist() == [7, 8, 9]
    assert data.class_names[99] == "class99"
    assert data.mean == pytest.approx(images[:6].reshape(6, 3, -1).mean(axis=(0, 2)) / 255)


class Harm:
    def __reduce__(self):
        return Path.touch, (Path("harm"),)


@pytest.mark.usefixtures("_small")
def test_nothing_is_unpickled_that_is_not_the_published_file(tmp_path, monkeypatch):
    cifar100(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    for name in ("train", "meta"):
        published = (tmp_path / "cifar-100-python" / name).read_bytes()
        put(tmp_path / "cifar-100-python" / name, pickle.dumps(Harm()))
        with pytest.raises(ConfigError, match="is damaged: MD5"):
            Torchvision(name="CIFAR100").load(tmp_path, 0)
        put(tmp_path / "cifar-100-python" / name, published)
    assert not (tmp_path / "harm").exists()


@pytest.mark.usefixtures("_small")
def test_svhn_and_usps(tmp_path, monkeypatch):
    images = RNG.integers(0, 256, (32, 32, 3, 6), np.uint8)
    lists = {"SVHN": {}, "USPS": {}}
    for part, size in zip(("train", "test"), SIZES, strict=True):
        name = f"{part}_32x32.mat"
        savemat(tmp_path / name, {"X": images[..., :size], "y": np.array([[10], [1], [2], [3], [4], [5]])[:size]})
        lists["SVHN"][part] = ["", name, md5((tmp_path / name).read_bytes())]
        rows = "".join(
            f"{row + 1} " + " ".join(f"{k + 1}:{row % 3 - 1}" for k in range(256)) + "\n" for row in range(size)
        )
        name = "usps.bz2" if part == "train" else "usps.t.bz2"
        lists["USPS"][part] = ["", name, md5(put(tmp_path / name, bz2.compress(rows.encode())))]
    for name, listed in lists.items():
        monkeypatch.setattr(getattr(datasets, name), "split_list", listed)
    data = loaded(Torchvision(name="SVHN"), tmp_path)
    assert np.array_equal(data.train.x[2].numpy(), images[..., 2].transpose(2, 0, 1))
    assert data.train.y.tolist() == [0, 1, 2, 3, 4, 5]
    data = loaded(Torchvision(name="USPS"), tmp_path)
    assert data.test.x[:, 0, 0, 0].tolist() == [0, 127, 255]  # from -1, 0, 1
    assert data.test.y.tolist() == [0, 1, 2]


@pytest.mark.usefixtures("_small")
def test_a_download_leaves_what_is_needed(tmp_path, monkeypatch, tree):
    fashion(tmp_path / "mirror", monkeypatch)

    def fetch(self):
        for path in (tmp_path / "mirror" / "FashionMNIST" / "raw").iterdir():
            put(Path(self.raw_folder) / path.name, path.read_bytes())
            put(Path(self.raw_folder) / path.stem, gzip.decompress(path.read_bytes()))

    monkeypatch.setattr(datasets.FashionMNIST, "download", fetch)
    root = tmp_path / "root"
    Torchvision(name="FashionMNIST").download(root)
    names = [path.name for path in (tmp_path / "mirror" / "FashionMNIST" / "raw").iterdir()]
    assert tree(root) == ["FashionMNIST", "FashionMNIST/raw", *(f"FashionMNIST/raw/{name}" for name in sorted(names))]
    assert len(Torchvision(name="FashionMNIST").verify(root)) == 4


def test_a_download_that_fails_leaves_nothing(tmp_path, monkeypatch, tree):
    def fail(self):
        put(Path(self.raw_folder) / "half", b"")
        raise RuntimeError("no route\nto host")

    monkeypatch.setattr(datasets.KMNIST, "download", fail)
    with pytest.raises(ConfigError, match=r"could not download KMNIST: no route to host$"):
        Torchvision(name="KMNIST").download(tmp_path)
    assert tree(tmp_path) == []


def test_absent_files_are_one_line(tmp_path):
    for options, words in (
        ({"name": "KMNIST"}, "no KMNIST/raw/train-images-idx3-ubyte.gz in"),
        ({"name": "CIFAR100"}, r"no cifar-100-python/train \(MD5 16019d7e3df5f24257cddd939b257f8d\)"),
        ({"name": "SVHN"}, "no train_32x32.mat"),
        ({"name": "EMNIST", "split": "byclass"}, "data download torchvision dataset.name=EMNIST dataset.split=byclass"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            made(options).require(tmp_path)
        assert "\n" not in str(caught.value)
        assert "fedexp data download torchvision dataset.name=" in str(caught.value)


def made(options: dict[str, Any]) -> Torchvision:
    return Torchvision(**options)


def test_split_is_emnists_alone():
    with pytest.raises(ConfigError, match=r"split must be one of byclass, .* for EMNIST, got null"):
        Torchvision(name="EMNIST")
    with pytest.raises(ConfigError, match="split must be null for KMNIST, got digits"):
        Torchvision(name="KMNIST", split="digits")
    with pytest.raises(ConfigError, match="name must be one of MNIST"):
        made({"name": "ImageNet"})


@pytest.mark.parametrize(("name", "ours"), [("MNIST", Mnist()), ("CIFAR10", Cifar10())])
def test_real_files_are_read_as_our_own_readers_do(real, name, ours):
    root = real(ours)
    data, other = loaded(Torchvision(name=name), root), ours.load(root, 0)
    for part in ("train", "test"):
        assert torch.equal(getattr(data, part).x, getattr(other, part).x)
        assert torch.equal(getattr(data, part).y, getattr(other, part).y)


def test_sizes_are_those_of_the_class_names():
    for one in vision.COLLECTIONS.values():
        if one.kind in ("MNIST", "FashionMNIST", "KMNIST", "EMNIST"):
            assert len(vision.class_names(one, vision.torchvision_class(one))) == one.classes
