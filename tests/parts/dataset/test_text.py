import os

import numpy as np
import pandas as pd
import pytest
import torch

from fedexp import run
from fedexp.core.errors import ConfigError
from fedexp.data import npy_header
from fedexp.data.pile import SpillBuffer
from fedexp.parts.dataset import check_data, text
from fedexp.parts.dataset.contract import IGNORED
from fedexp.parts.dataset.text import Text, windows
from fedexp.training.client.examples import Examples


def loaded(dataset, directory):
    """The data, if it is what its facts say."""
    data = dataset.load(directory, 0)
    check_data.refuse(dataset, dataset.facts(directory), data)
    return data


@pytest.fixture
def mine(tmp_path):
    def make(lines, **options):
        (tmp_path / "mine.txt").write_text("\n".join(lines), encoding="utf-8")
        return Text(file=tmp_path / "mine.txt", **options)

    return make


def test_every_token_but_the_first_is_predicted_once():
    x, y = windows(np.array([9, 1, 2, 3, 4]), 3)
    assert x.tolist() == [[9, 1, 2], [3, 0, 0]]
    assert y.tolist() == [[1, 2, 3], [4, IGNORED, IGNORED]]
    x, y = windows(np.array([9, 1, 2, 9]), 3)
    assert (x.tolist(), y.tolist()) == ([[9, 1, 2]], [[1, 2, 9]])


def test_lines_by_hand(mine, tmp_path):
    data = loaded(mine(["bba", "bba", "", " bba", "bba "], subjects=2, test_fraction=0.5, length=5), tmp_path)
    # two training lines: 4 b, 4 ends of lines (and those before the first), 2 a
    assert data.class_names == ("<unk>", "<line>", "b", "a")
    for split in (data.train, data.test):
        assert split.x.tolist() == [[1, 2, 2, 3, 0]] * 2
        assert split.y.tolist() == [[2, 2, 3, 1, IGNORED]] * 2
    assert sorted(data.train.subject.tolist() + data.test.subject.tolist()) == [0, 0, 1, 1]


def test_words_that_no_training_line_has_are_unknown(mine, tmp_path):
    lines = [f"the word{number}" for number in range(10)]
    data = loaded(mine(lines, unit="words", subjects=1, length=3, vocabulary=2), tmp_path)
    assert data.class_names == ("<unk>", "<line>", "the")
    assert data.test.y.tolist() == [[2, 0, 1]] * 2


def test_pythons_licence_is_the_default(tmp_path):
    data, facts = loaded(Text(), tmp_path), Text().facts(tmp_path)
    assert facts.outputs == (80, facts.classes)
    assert facts.vocabulary == facts.classes > 50
    told = "".join(data.class_names[number] for number in data.train.x[:50].reshape(-1).tolist())
    assert "Python" in told
    assert "characters" in Text().verify(tmp_path)[0]


def test_test_lines_are_the_same_for_every_seed_and_the_file_is_read_once(mine, tmp_path, monkeypatch):
    dataset, reads = mine([f"line {number}" for number in range(40)]), []
    plain = text._lines
    monkeypatch.setattr(text, "_lines", lambda path, asked: reads.append(path) or plain(path, asked))
    assert dataset.load(tmp_path, 0).sha256() == dataset.load(tmp_path, 1).sha256()
    dataset.facts(tmp_path)
    assert len(reads) == 1
    os.utime(tmp_path / "mine.txt", ns=(1, 1))
    dataset.facts(tmp_path)
    assert len(reads) == 2


def test_a_long_text_is_mapped_and_copied_nowhere(mine, tmp_path, monkeypatch):
    dataset = mine([f"line {number}" for number in range(40)])
    plain = dataset.load(tmp_path, 0)
    monkeypatch.setattr(npy_header, "LARGE", 1)
    text._parse.cache_clear()
    wholes, whole = [], SpillBuffer.to_array
    monkeypatch.setattr(SpillBuffer, "to_array", lambda pile: wholes.append(whole(pile)) or wholes[-1])
    data = loaded(dataset, tmp_path)
    assert [type(array) for array in wholes] == [np.memmap] * 4
    assert data.train.x.data_ptr() == wholes[0].ctypes.data
    assert data.sha256() == plain.sha256()
    held = Examples(data.train, data, torch.device("cpu")).normalise()
    assert held.x.data_ptr() == data.train.x.data_ptr()


def test_every_file_of_a_folder_is_an_author(tmp_path):
    """Files in the order of their names; of each file's lines a half is for testing, and files may be short."""
    texts = {"grace.txt": ["bb"] * 4, "ada.txt": ["a", "", "a"], "notes.md": ["none"], ".hidden.txt": ["none"]}
    (tmp_path / "letters").mkdir()
    for name, lines in texts.items():
        (tmp_path / "letters" / name).write_text("\n".join(lines))
    dataset = Text(file=tmp_path / "letters", test_fraction=0.5, length=4)
    data = loaded(dataset, tmp_path)
    assert data.subject_names == ("ada", "grace")
    assert dataset.facts(tmp_path).subjects == 2
    names = np.array(data.vocabulary)
    for split in (data.train, data.test):
        assert split.subject is not None
        assert split.subject.tolist() == [0, 1, 1]
        assert names[split.x].tolist() == [["<line>", "a", "<unk>", "<unk>"], *[["<line>", "b", "b", "<unk>"]] * 2]
    assert f"{tmp_path / 'letters'} holds 6 examples" in dataset.verify(tmp_path)[0]
    (tmp_path / "letters" / "ada.txt").write_text("\n")
    with pytest.raises(ConfigError, match=r"ada.txt must have a line that is not empty"):
        dataset.require(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"or a folder with files \*\.txt, but .*empty has none"):
        Text(file=tmp_path / "empty").require(tmp_path)


def test_a_folder_of_speakers_is_a_federation_with_their_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "speakers").mkdir()
    for name in ("hamlet", "ophelia", "yorick"):
        (tmp_path / "speakers" / f"{name}.txt").write_text(f"{name} says a word\n" * 10)
    words = ("dataset=text", "dataset.file=speakers", "evaluation.personal_fraction=0.2", "model.hidden=4")
    done = run(*words, "rounds=1", "pictures=false", folder="run", quiet=True)
    assert pd.read_csv("run/client_scores.csv")["name"].tolist() == ["hamlet", "ophelia", "yorick"]
    assert done.summary["clients"] == 3


def test_what_will_not_do_is_one_line(mine, tmp_path):
    with pytest.raises(ConfigError, match=r"two lines for each of 10 subjects, got 2 that are not empty; lower"):
        mine(["a", "", "b"]).require(tmp_path)
    with pytest.raises(ConfigError, match=r"dataset.test_fraction must give a line for testing"):
        mine(["a"] * 40, test_fraction=0.01).require(tmp_path)
    words = "must leave a training line for each of 10 subjects, got 0.9999 of 40 lines, which leaves 1; lower it or"
    with pytest.raises(ConfigError, match=words):
        mine(["a"] * 40, test_fraction=0.9999).require(tmp_path)
    (tmp_path / "mine.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="must be a text in UTF-8"):
        Text(file=tmp_path / "mine.txt").require(tmp_path)
    (tmp_path / "mine.txt").write_bytes(b"\xef\xbb\xbf" + b"ab\n" * 40)
    assert Text(file=tmp_path / "mine.txt").load(tmp_path, 0).class_names == ("<unk>", "<line>", "a", "b")
    with pytest.raises(ConfigError, match=r"dataset.file must be a text file, but there is no"):
        Text(file=tmp_path / "other.txt").require(tmp_path)
    with pytest.raises(ConfigError, match="no source"):
        Text().download(tmp_path)


def test_a_number_of_subjects_does_nothing_with_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "speakers").mkdir()
    for name in ("hamlet", "ophelia"):
        (tmp_path / "speakers" / f"{name}.txt").write_text(f"{name} says a word\n" * 10)
    refusal = (
        r"^dataset.subjects does nothing where dataset.file is a folder, got 3 for .*speakers, whose files are the"
    )
    with pytest.raises(ConfigError, match=refusal):
        run("dataset=text", "dataset.file=speakers", "dataset.subjects=3", rounds=1, folder="run", quiet=True)
    Text(file=tmp_path / "speakers", subjects=3).refuse_subjects(tmp_path, 3)
    Text(subjects=3).refuse_subjects(tmp_path, 4)


def test_a_table_is_no_text(tmp_path):
    (tmp_path / "reviews.csv").write_text("text,author\nfine,me\n")
    with pytest.raises(ConfigError, match=r"reviews\.csv is a table: dataset=table takes tables"):
        Text(file=tmp_path / "reviews.csv").load(tmp_path, 0)
