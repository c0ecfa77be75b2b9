import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.data import npy_header
from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.npz import Npz
from fedexp.training.client.examples import Examples

RNG = np.random.default_rng(0)


def arrays(shape: tuple[int, ...] = (4,), dtype: type[np.generic] = np.float64, **changes: Any) -> dict[str, Any]:
    y = np.arange(6) % 3
    found = {
        "x_train": (RNG.random((6, *shape)) * 255).astype(dtype),
        "y_train": y,
        "x_test": (RNG.random((3, *shape)) * 255).astype(dtype),
        "y_test": y[:3],
    }
    return {name: value for name, value in (found | changes).items() if value is not None}


@pytest.fixture
def saved(tmp_path):
    def save(content, **options):
        np.savez(tmp_path / "own.npz", **content)
        return Npz(path=tmp_path / "own.npz", **options)

    return save


def test_table(saved, tmp_path):
    content = arrays(subject=np.array([7, 7, 8, 9, 9, 9]))
    dataset = saved(content)
    facts, data = dataset.facts(tmp_path), dataset.load(tmp_path, 0)
    assert (facts.shape, facts.classes, facts.train_size, facts.subjects) == ((4,), 3, 6, 3)
    assert data.train.x.dtype == torch.float32
    assert np.array_equal(data.train.x.numpy(), content["x_train"].astype(np.float32))
    assert data.train.subject.tolist() == [7, 7, 8, 9, 9, 9]
    assert (data.scale, data.mean, data.std) == (1.0, (0.0,), (1.0,))
    assert dataset.verify(tmp_path) != []


def test_uint8_images_stay(saved, tmp_path):
    content = arrays((5, 4), np.uint8)
    dataset = saved(content)
    data = dataset.load(tmp_path, 0)
    assert dataset.facts(tmp_path).shape == (1, 5, 4)
    assert data.train.x.dtype == torch.uint8
    assert np.array_equal(data.train.x[:, 0].numpy(), content["x_train"])
    assert data.scale == 255.0
    assert data.train.subject is None


@pytest.mark.parametrize(
    ("layout", "stored", "shape"),
    [
        ("channels_first", (3, 5, 4), (3, 5, 4)),
        ("channels_last", (5, 4, 3), (3, 5, 4)),
        ("channels_first", (3, 5), (3, 5)),
        ("channels_last", (5, 3), (3, 5)),
        ("channels_last", (5,), (5,)),
    ],
)
def test_layouts(saved, tmp_path, layout, stored, shape):
    content = arrays(stored, np.uint8)
    dataset = saved(content, layout=layout)
    data = dataset.load(tmp_path, 0)
    assert dataset.facts(tmp_path).shape == shape
    assert data.test.x.shape == (3, *shape)
    if len(stored) == 3:
        one = content["x_test"][1]
        expected = one[2, 1, 0] if layout == "channels_first" else one[1, 0, 2]
        assert int(data.test.x[1, 2, 1, 0]) == expected


def test_normalise_uses_training_examples_only(saved, tmp_path):
    x = np.zeros((6, 2))
    x[:, 0] = [0, 0, 0, 4, 4, 4]
    data = saved(arrays(x_train=x, x_test=np.full((3, 2), 100.0)), normalise="train").load(tmp_path, 0)
    assert (data.mean, data.std) == ((2.0, 0.0), (2.0, 1.0))


def test_relative_path_below_the_data_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "root").mkdir()
    np.savez_compressed(tmp_path / "root" / "own.npz", **arrays())
    assert Npz(path=Path("own.npz")).facts(tmp_path / "root").train_size == 6


def test_facts_do_not_read_the_examples(saved, tmp_path):
    dataset = saved(arrays((64, 64), np.uint8))
    raw = bytearray((tmp_path / "own.npz").read_bytes())
    raw[5000] ^= 255  # inside x_train
    (tmp_path / "own.npz").write_bytes(raw)
    assert dataset.facts(tmp_path).shape == (1, 64, 64)
    with pytest.raises(ConfigError, match=r"x_train in .* cannot be read"):
        dataset.load(tmp_path, 0)


def anonymous() -> int:
    """Bytes of this process that lie in no file."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is told by Linux")
@pytest.mark.parametrize(
    ("shape", "layout", "kind"),
    [((64, 64), None, np.uint8), ((32, 32, 4), "channels_last", np.uint8), ((32, 32), None, np.float32)],
)
def test_large_arrays_stay_in_the_file(tmp_path, monkeypatch, shape, layout, kind):
    monkeypatch.setattr(npy_header, "LARGE", 2**20)
    labels = np.arange(8192) % 2
    np.savez(tmp_path / "own.npz", x_train=np.full((8192, *shape), 7, kind), y_train=labels,
             x_test=np.ones((2, *shape), kind), y_test=labels[:2])  # fmt: skip
    before = anonymous()
    dataset = Npz(path=tmp_path / "own.npz", layout=layout)
    data = dataset.load(tmp_path, 0)
    check_data.refuse(dataset, dataset.facts(tmp_path), data)
    examples = Examples(data.train, data, torch.device("cpu"))
    assert anonymous() - before < 8 * 2**20  # 32 MB are in the file
    assert float(examples.inputs(slice(8000, 8002)).max()) == pytest.approx(7 / data.scale)
    data.train.x[0] = 9  # what is written stays in this process
    assert Npz(path=tmp_path / "own.npz", layout=layout).load(tmp_path, 0).train.x.max() == 7


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.dtype(">f4")])
@pytest.mark.parametrize("order", ["C", "F"])
def test_mapped_arrays_are_those_that_are_read(saved, tmp_path, monkeypatch, dtype, order):
    content = arrays((3, 5), dtype)
    content["x_train"] = np.asarray(content["x_train"], order=order)
    dataset = saved(content, layout="channels_last")
    plain = dataset.load(tmp_path, 0)
    monkeypatch.setattr(npy_header, "LARGE", 1)
    mapped = dataset.load(tmp_path, 0)
    assert torch.equal(plain.train.x, mapped.train.x)
    assert plain.sha256() == mapped.sha256()


def test_check_reads_all_of_what_is_mapped(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(npy_header, "LARGE", 1)
    dataset = saved(arrays((64, 64), np.uint8))
    raw = bytearray((tmp_path / "own.npz").read_bytes())
    raw[5000] ^= 255  # inside x_train
    (tmp_path / "own.npz").write_bytes(raw)
    dataset.load(tmp_path, 0)
    with pytest.raises(ConfigError, match=r"x_train.npy in .* is damaged"):
        dataset.verify(tmp_path)


NAN = np.full((3, 4), np.nan)
HUGE = np.full((3, 4), 1e300)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x_test": None}, "lacks the array x_test"),
        ({"y_train": np.arange(5)}, r"y_train in .* must have shape \(6,\) like the examples, got \(5,\)"),
        ({"subject": np.arange(5)}, r"subject in .* must have shape \(6,\)"),
        ({"y_train": np.arange(6) % 3 + 1}, r"labels 0..K-1 .*got 1, 2, 3"),
        ({"y_train": np.arange(6) % 3 * 2}, "got 0, 2, 4"),
        ({"y_train": np.arange(6, dtype=np.uint64) % 2 + np.uint64(2**63)}, f"got {2**63}, {2**63 + 1}"),
        ({"y_train": np.zeros(6, int)}, "K > 1"),
        ({"y_train": np.arange(6.0)}, "must hold integers, got dtype float64"),
        ({"y_test": np.array([0, 1, 3])}, r"y_test in .* \(0..2\), got 3"),
        ({"x_train": np.empty((6, 4), object)}, "must hold numbers, got dtype object"),
        ({"x_test": np.full((3, 4), "a")}, "must hold numbers"),
        ({"x_test": NAN}, "x_test in .* must be finite"),
        ({"x_test": HUGE}, "x_test in .* must be finite"),
        ({"x_test": np.zeros((3, 5))}, "examples like x_train"),
        ({"x_test": np.zeros((3, 4), np.uint8)}, "both be uint8"),
        ({"x_train": np.zeros(6)}, "2 to 4 dimensions"),
        ({"x_train": np.zeros((0, 4)), "y_train": np.zeros(0, int)}, "not be empty"),
    ],
)
def test_arrays_that_will_not_do(saved, tmp_path, changes, words):
    with pytest.raises(ConfigError, match=words) as caught:
        saved(arrays(**changes)).load(tmp_path, 0)
    assert "\n" not in str(caught.value)


def test_colour_images_need_a_layout(saved, tmp_path):
    dataset = saved(arrays((4, 4, 3), np.uint8))
    with pytest.raises(ConfigError, match=r"dataset.layout must be channels_first or channels_last .*\(4, 4, 3\)"):
        dataset.require(tmp_path)


def test_object_arrays_are_never_unpickled(saved, tmp_path):
    content = arrays(extra=np.array([{"a": 1}], object))
    assert saved(content).load(tmp_path, 0).train.x.shape == (6, 4)


def test_files_that_are_no_npz(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no own\.npz"):
        Npz(path=Path("own.npz")).require(tmp_path)
    (tmp_path / "own.npz").write_bytes(b"text")
    with pytest.raises(ConfigError, match=r"cannot be read as a \.npz file"):
        Npz(path=Path("own.npz")).require(tmp_path)
    with pytest.raises(ConfigError, match="no source"):
        Npz(path=Path("own.npz")).download(tmp_path)
