import json
import os
from typing import Any

import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.data import leaf as reader
from fedexp.data import npy_header
from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.leaf import Leaf
from fedexp.training.client.examples import Examples


def put(folder, part, users, name="a.json"):
    (folder / part).mkdir(parents=True, exist_ok=True)
    found = {user: {"x": x, "y": y} for user, (x, y) in users.items()}
    counts = [len(y) for _, y in users.values()]
    (folder / part / name).write_text(json.dumps({"users": [*users], "num_samples": counts, "user_data": found}))


def loaded(dataset, directory):
    """The data, if it is what its facts say."""
    dataset.require(directory)
    data = dataset.load(directory, 0)
    check_data.refuse(dataset, dataset.facts(directory), data)
    return data


def image(value):
    return [value] * 783 + [1.0]


def test_users_of_femnist_keep_their_numbers_in_both_parts(tmp_path):
    put(tmp_path, "train", {"f2": ([image(0.25)], [61]), "f1": ([image(0.5), image(0.75)], [0, 10])})
    put(tmp_path, "train", {"f0": ([image(0.0)], [9]), "nobody": ([], [])}, "b.json")
    put(tmp_path, "test", {"f1": ([image(0.1)], [3]), "new": ([image(0.2)], [4])})
    dataset = Leaf(path=tmp_path)
    data, facts = loaded(dataset, tmp_path), dataset.facts(tmp_path)
    assert (facts.shape, facts.classes, facts.train_size, facts.subjects) == ((1, 28, 28), 62, 4, 3)
    people: Any = (data.train.subject, data.test.subject)
    assert [each.tolist() for each in people] == [[2, 1, 1, 0], [1, 3]]
    assert [data.class_names[label] for label in data.train.y.tolist()] == ["z", "0", "A", "9"]
    assert data.train.x[:, 0, 0, 0].tolist() == [0.25, 0.5, 0.75, 0.0]
    assert data.train.x[:, 0, 27, 27].tolist() == [1.0] * 4
    assert "4 training examples of 3 users, 62 classes" in dataset.verify(tmp_path)[0]


def test_shakespeare_is_80_letters_and_the_next(tmp_path):
    put(tmp_path, "train", {"HAMLET": (["To be, or" + " " * 71], ["n"])})
    put(tmp_path, "test", {"HAMLET": (["a" * 80], ["b"])})
    dataset = Leaf(path=tmp_path, name="shakespeare")
    data, facts = loaded(dataset, tmp_path), dataset.facts(tmp_path)
    assert (facts.shape, facts.classes, facts.vocabulary, facts.targets) == ((80,), 80, 80, "class")
    assert "".join(data.class_names[number] for number in data.train.x[0, :9].tolist()) == "To be, or"
    assert data.class_names[int(data.train.y[0])] == "n"
    assert data.train.x.dtype == torch.int64
    assert data.vocabulary[0] == "\n"
    assert data.class_names[0] == r"\n"  # a column of tables


def test_rows_of_numbers(tmp_path):
    put(tmp_path, "train", {"0": ([[1, 2.5]], [1.0]), "1": ([[0, 1]], [2])})
    put(tmp_path, "test", {"0": ([[1, 1]], [0])})
    data = loaded(Leaf(path=tmp_path, name="synthetic"), tmp_path)
    assert data.train.x.tolist() == [[1, 2.5], [0, 1]]
    assert data.class_names == ("0", "1", "2")


def test_files_are_parsed_once(tmp_path, monkeypatch):
    put(tmp_path, "train", {"0": ([[1, 2]], [1])})
    put(tmp_path, "test", {"0": ([[1, 1]], [0])})
    dataset, reads = Leaf(path=tmp_path, name="synthetic"), []
    plain = reader._users
    monkeypatch.setattr(reader, "_users", lambda path, x, y: reads.append(path) or plain(path, x, y))
    loaded(dataset, tmp_path)
    dataset.facts(tmp_path)
    assert len(reads) == 2
    put(tmp_path, "test", {"0": ([[1, 1], [2, 2]], [0, 1])})
    assert len(dataset.load(tmp_path, 0).test.y) == 2


def test_many_examples_stay_in_the_cache_and_are_copied_nowhere(tmp_path, own_cache, monkeypatch):
    put(tmp_path, "train", {"f2": ([image(0.25)], [61]), "f1": ([image(0.5), image(0.75)], [0, 10])})
    put(tmp_path, "test", {"f1": ([image(0.1)], [3])})
    dataset = Leaf(path=tmp_path)
    plain = loaded(dataset, tmp_path)
    for file in own_cache.rglob("*.npz"):
        file.unlink()
    monkeypatch.setattr(npy_header, "LARGE", 1)
    for _ in range(2):  # when the files are parsed, and from the cache
        reader._load_arrays.cache_clear()
        assert isinstance(dataset._arrays(tmp_path)["x_train"], np.memmap)
        data = loaded(dataset, tmp_path)
        assert data.sha256() == plain.sha256()
        held = Examples(data.train, data, torch.device("cpu")).normalise()
        assert held.x.data_ptr() == data.train.x.data_ptr() == dataset._arrays(tmp_path)["x_train"].ctypes.data


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not a file of LEAF: Expecting"),
        ("{}", "is not a file of LEAF: it lacks 'user_data'"),
        ('{"user_data": {"u": {"x": [[1]], "y": []}}}', "user 'u' has 1 examples and 0 labels"),
        ('{"user_data": {"u": {"x": [[1, 2]], "y": [0]}}}', "must have 784 pixels, got 2"),
        ('{"user_data": {}}', "must hold an example, but no user has one"),
        (json.dumps({"user_data": {"u": {"x": [image(1.0)], "y": [62]}}}), "must be below 62, got 62"),
        (json.dumps({"user_data": {"u": {"x": [image(1.0)], "y": ["z"]}}}), "is not a file of LEAF: could not convert"),
        ('{"user_data": {"u": {"x": [[1]], "y": [1]}, "v": {"x": [[1, 2]], "y": [1]}}}', "1 entries .* 'v' .* of 2"),
        ('{"user_data": {"u": {"x": [[1]], "y": [1]}, "u": {"x": [[2]], "y": [1]}}}', "'u' comes twice in one object"),
        ('{"user_data": ' + "[" * 100_000, "is not a file of LEAF: .*recursion"),
        ('{"user_data": {"u": {"x": [[1' + "0" * 400 + ']], "y": [1]}}}', "is not a file of LEAF: .*too large"),
        ('{"user_data": {"u": {"x": [[1]], "y": [1' + "0" * 400 + "]}}}", "is not a file of LEAF: .*too large"),
        ('{"user_data": {"u": {"x": [[1e39]], "y": [1]}}}', "finite numbers"),
    ],
)
def test_what_will_not_do_is_one_line(tmp_path, content, words):
    put(tmp_path, "test", {"u": ([image(0.0)], [0])})
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.json").write_text(content)
    with pytest.raises(ConfigError, match=words) as caught:
        Leaf(path=tmp_path).facts(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_user_in_two_files_is_refused(tmp_path):
    put(tmp_path, "train", {"f1": ([[1, 2]], [1])})
    put(tmp_path, "train", {"f1": ([[1, 2]], [1])}, "copy of a.json")
    put(tmp_path, "test", {"f1": ([[1, 2]], [1])})
    with pytest.raises(ConfigError, match=r"user 'f1' is in both .*a.json and .*copy of a.json; remove one of them"):
        Leaf(path=tmp_path, name="synthetic").facts(tmp_path)


def test_users_that_differ_in_a_nul_are_two(tmp_path):
    put(tmp_path, "train", {"a": ([[1, 2]], [1]), "a\0": ([[3, 4]], [0])})
    put(tmp_path, "test", {"a\0": ([[1, 2]], [1])})
    data: Any = loaded(Leaf(path=tmp_path, name="synthetic"), tmp_path)
    assert (data.train.subject.tolist(), data.test.subject.tolist()) == ([0, 1], [1])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("odd", ["pipe", "link", "folder"])
def test_what_is_no_file_is_refused(tmp_path, odd):
    put(tmp_path, "train", {"a": ([[1, 2]], [1])})
    put(tmp_path, "test", {"a": ([[1, 2]], [1])})
    path = tmp_path / "train" / "b.json"
    {"pipe": os.mkfifo, "link": lambda path: path.symlink_to("nowhere"), "folder": os.mkdir}[odd](path)
    with pytest.raises(
        ConfigError, match=r"train/b.json must be a file, but is a folder, a pipe, or a link that leads"
    ):
        Leaf(path=tmp_path, name="synthetic").require(tmp_path)


def test_folders_that_are_not_leafs(tmp_path):
    with pytest.raises(
        ConfigError, match=r"no JSON files in .*train; dataset.path must be a folder that LEAF has made"
    ):
        Leaf(path=tmp_path).require(tmp_path)
    with pytest.raises(ConfigError, match=r"dataset.path must be a folder, but there is no"):
        Leaf(path=tmp_path / "no").require(tmp_path)
    with pytest.raises(ConfigError, match=r"preprocess.sh"):
        Leaf(path=tmp_path).download(tmp_path)
