import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.huggingface import DICT_FILE, HuggingFace, _parse

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (5, 4, 6, 3), np.uint8)


class Columns(dict):
    """A split as the library gives it: columns by name, and what is known of each."""

    @property
    def features(self):
        kinds = {name: SimpleNamespace() for name in self}
        return kinds | {"label": SimpleNamespace(names=["cat", "dog"])}


class Splits(dict):
    def save_to_disk(self, folder):
        from pathlib import Path

        Path(folder).mkdir()
        (Path(folder) / DICT_FILE).write_text(json.dumps({"splits": list(self)}))


def images():
    pictures = [Image.fromarray(array) for array in PIXELS]
    return Splits(
        train=Columns(image=pictures[:3], label=[0, 1, 1], who=["b", "a", "b"]),
        test=Columns(image=pictures[3:], label=[1, 0], who=["c", "a"]),
    )


def texts():
    return Splits(
        train=Columns(text=["no no yes", "yes, no"], mark=[2, 0]),
        held=Columns(text=["maybe no"], mark=[1]),
    )


@pytest.fixture
def library(monkeypatch):
    """Stands in for the library: every folder holds what the test says."""
    module: Any = ModuleType("datasets")
    module.found, module.asked = images(), []
    module.load_from_disk = lambda folder: module.found
    module.load_dataset = lambda *words: module.asked.append(words) or module.found
    monkeypatch.setitem(sys.modules, "datasets", module)
    _parse.cache_clear()
    yield module
    _parse.cache_clear()


def loaded(dataset, directory):
    """The data, if it is what its facts say."""
    dataset.require(directory)
    data = dataset.load(directory, 0)
    check_data.refuse(dataset, dataset.facts(directory), data)
    return data


def test_images_with_a_client_column(library, tmp_path):
    library.found.save_to_disk(str(tmp_path / "pets"))
    data = loaded(HuggingFace(path="pets", client="who"), tmp_path)
    assert np.array_equal(data.train.x.numpy(), PIXELS[:3].transpose(0, 3, 1, 2))
    assert data.class_names == ("cat", "dog")
    people: Any = (data.train.subject, data.test.subject)
    assert [each.tolist() for each in people] == [[1, 0, 1], [2, 0]]
    assert (data.scale, data.mean) == (255.0, (0.5,))


def test_texts_of_one_class_each(library, tmp_path):
    library.found = texts()
    library.found.save_to_disk(str(tmp_path / "said"))
    dataset = HuggingFace(path="said", holds="texts", input="text", target="mark", test="held", length=4)
    data, facts = loaded(dataset, tmp_path), dataset.facts(tmp_path)
    # no: 3, yes: 2, the comma: 1
    assert data.train.x.tolist() == [[1, 1, 2, 0], [2, 3, 1, 0]]
    assert data.test.x.tolist() == [[0, 1, 0, 0]]
    assert data.class_names == ("0", "1", "2")
    assert (facts.vocabulary, facts.shape, facts.targets) == (4, (4,), "class")


def test_a_name_of_the_hub_is_fetched_once_and_read_from_the_disk(library, tmp_path):
    dataset = HuggingFace(path="pets/small", configuration="plain")
    with pytest.raises(
        ConfigError, match=r'run "fedexp data download huggingface dataset.path=pets/small dataset.conf.*=plain"'
    ):
        dataset.require(tmp_path)
    for _ in range(2):
        dataset.download(tmp_path)
    assert library.asked == [("pets/small", "plain")]
    assert (tmp_path / "huggingface" / "pets--small--plain" / DICT_FILE).is_file()
    assert "3 training examples [3, 4, 6], 2 classes" in dataset.verify(tmp_path)[0]


def test_a_download_that_fails_is_one_line_and_leaves_nothing(library, tmp_path, tree):
    def fail(*_):
        raise RuntimeError("no such name\non the hub")

    library.load_dataset = fail
    with pytest.raises(ConfigError, match=r"could not download pets: no such name$"):
        HuggingFace(path="pets").download(tmp_path)
    assert tree(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"train": "trian"}, "dataset.train must name a split of .*, got trian; did you mean train"),
        ({"input": "img"}, "dataset.input must name a column, got img"),
        ({"client": "whom"}, "dataset.client must name a column, got whom; did you mean who"),
    ],
)
def test_what_is_not_there_is_one_line(library, tmp_path, options, words):
    library.found.save_to_disk(str(tmp_path / "pets"))
    with pytest.raises(ConfigError, match=words):
        HuggingFace(path="pets", **options).facts(tmp_path)


def test_images_of_several_sizes(library, tmp_path):
    library.found["train"]["image"][0] = Image.fromarray(PIXELS[0][:2])
    library.found.save_to_disk(str(tmp_path / "pets"))
    with pytest.raises(ConfigError, match="must have one size"):
        HuggingFace(path="pets").facts(tmp_path)


def test_classes_by_name(library, tmp_path):
    library.found = texts()
    library.found["train"]["mark"], library.found["held"]["mark"] = ["good", "bad"], ["bad"]
    library.found.save_to_disk(str(tmp_path / "reviews"))
    settings = HuggingFace(path="reviews", holds="texts", input="text", target="mark", test="held")
    data = settings.load(tmp_path, 0)
    assert data.class_names == ("bad", "good")
    assert (data.train.y.tolist(), data.test.y.tolist()) == ([1, 0], [0])


def test_a_class_that_was_never_trained_on(library, tmp_path):
    library.found = texts()
    library.found["train"]["mark"], library.found["held"]["mark"] = ["good", "bad"], ["new"]
    library.found.save_to_disk(str(tmp_path / "reviews"))
    with pytest.raises(ConfigError, match=r"all in the training split, but 1 of 1 in held are none, such as .*new"):
        HuggingFace(path="reviews", holds="texts", input="text", target="mark", test="held").load(tmp_path, 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"label": [0, -1, 1]},
            r"dataset.target=label must hold classes, .* but 1 of 3 in train are none, such as int -1; choose",
        ),
        ({"label": [0, 0.5, 1]}, "float 0.5"),
        ({"label": [0, None, 1]}, "None"),
        ({"label": ["cat", "dog", "cat"]}, "3 of 3 in train are none, such as str cat"),
        ({"label": [0, 4_000_000_000, 1]}, "int 4000000000"),
        (
            {"who": ["a", None, "b"]},
            "dataset.client=who must hold texts alone or whole numbers alone, got NoneType and str",
        ),
        ({"who": ["1", 1, "b"]}, "got int and str"),
        ({"image": [Image.new("I;16", (6, 4))] * 3}, "must have 8 bits a channel, got uint16"),
        ({"image": [Image.new("1", (6, 4))] * 3}, "must have 8 bits a channel, got bool"),
        ({"image": [None] * 3}, "got object"),
    ],
)
def test_cells_that_will_not_do_are_one_line(library, tmp_path, changes, words):
    library.found["train"].update(changes)
    library.found.save_to_disk(str(tmp_path / "pets"))
    with pytest.raises(ConfigError, match=words):
        HuggingFace(path="pets", client="who").facts(tmp_path)


def test_names_that_differ_in_a_nul_are_two_clients(library, tmp_path):
    library.found["train"]["who"] = ["a", "a\0", "a"]
    library.found.save_to_disk(str(tmp_path / "pets"))
    people: Any = loaded(HuggingFace(path="pets", client="who"), tmp_path).train.subject
    assert people.tolist() == [0, 1, 0]


def test_pictures_with_a_palette_have_its_colours(library, tmp_path):
    red = Image.new("P", (6, 4))
    red.putpalette([255, 0, 0])
    library.found["train"]["image"] = [red] * 3
    library.found.save_to_disk(str(tmp_path / "pets"))
    assert loaded(HuggingFace(path="pets"), tmp_path).train.x[0, :, 0, 0].tolist() == [255, 0, 0]


def test_texts_that_are_none(library, tmp_path):
    library.found = texts()
    library.found["train"]["text"][0] = None
    library.found.save_to_disk(str(tmp_path / "said"))
    with pytest.raises(ConfigError, match=r"dataset.input=text must hold texts, got None"):
        HuggingFace(path="said", holds="texts", input="text", target="mark", test="held").facts(tmp_path)


def test_without_the_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    images().save_to_disk(str(tmp_path / "pets"))
    with pytest.raises(ConfigError, match=r"needs the package datasets; pip install 'fedexp\[hf\]'"):
        HuggingFace(path="pets").require(tmp_path)
