"""How rows become inputs and outputs answers, by numbers that can be worked out by hand."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.data.tables.encoding import Column
from fedexp.data.tokens import TextFormat
from fedexp.export import encoder as encoders
from fedexp.export.encoder import Encoder
from fedexp.export.read_encoder import read_encoder

TABLE = Encoder(
    dtype="float32",
    shape=(3,),
    scale=1.0,
    mean=(0.0,),
    std=(1.0,),
    columns=(Column("age", 50.0, 10.0), Column("sex", categories=("f", "m"))),
    targets="class",
    answers=("no", "yes"),
    target_columns=(),
    text=None,
    vocabulary=(),
)
PIXELS = replace(TABLE, dtype="uint8", shape=(2, 1, 1), scale=255.0, mean=(0.5, 0.0), std=(0.5, 2.0), columns=())


def test_columns_are_found_by_name_in_any_order():
    frame = pd.DataFrame({"sex": ["m", "x"], "height": [1, 2], "age": [70, 50]})
    assert TABLE.rows(frame).tolist() == [[2.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"sex": ["m"]}, "the rows must have the column age, but it is missing"),
        ({"sex": ["m"], "age": ["old"]}, "column age must hold numbers, but holds text"),
        ({"sex": ["m"], "age": [None]}, "column age lacks a value in 1 of 1 rows"),
        ({"sex": ["m"], "age": [np.inf]}, "column age must be finite"),
        ({"sex": ["m"], "age": [1e300]}, "column age, in deviations from its mean, must stay below 3e38"),
    ],
)
def test_rows_that_do_not_fit_are_one_line(frame, said):
    with pytest.raises(ConfigError, match=said):
        TABLE.rows(pd.DataFrame(frame))


def test_a_missing_value_is_the_mean_or_no_category_where_training_filled_it():
    filling = replace(TABLE, columns=tuple(replace(column, fills_missing=True) for column in TABLE.columns))
    assert filling.rows(pd.DataFrame({"age": [None], "sex": [None]})).tolist() == [[0.0, 0.0, 0.0]]


def test_pixels_are_normalised_by_channel():
    x = torch.tensor([[[[255]], [[51]]]], dtype=torch.uint8)
    assert PIXELS.inputs(x).flatten().tolist() == pytest.approx([1.0, 0.1])


def test_examples_of_another_kind_are_refused():
    with pytest.raises(
        ConfigError, match=r"must be uint8 \[S, 2, 1, 1\], the channel in front, got float32 \[1, 2, 1, 1\]"
    ):
        PIXELS.inputs(torch.zeros(1, 2, 1, 1))
    with pytest.raises(ConfigError, match=r"takes examples of shape .* and no rows of a table"):
        PIXELS.rows(pd.DataFrame())


def test_tokens_stay_numbers_and_must_be_known():
    tokens = replace(TABLE, dtype="int64", shape=(2,), columns=(), vocabulary=("a", "b"))
    assert tokens.inputs(torch.tensor([[0, 1]])).tolist() == [[0, 1]]
    with pytest.raises(ConfigError, match="from 0 to 1"):
        tokens.inputs(torch.tensor([[0, 2]]))


REVIEWS = replace(
    TABLE, dtype="int64", shape=(3,), columns=(), text=TextFormat("words", "review"), vocabulary=("<unk>", "no", "yes")
)


def test_texts_are_cut_and_numbered_as_for_training():
    frame = pd.DataFrame({"review": ["yes, no no", ""], "stars": [1, 2]})
    assert REVIEWS.rows(frame).tolist() == [[2, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"reviews": ["yes"]}, "the rows must have the column review with the texts.*reviews"),
        ({"review": ["yes", None]}, "review must hold texts, but row 2 has"),
    ],
)
def test_rows_without_texts_are_one_line(frame, said):
    with pytest.raises(ConfigError, match=said):
        REVIEWS.rows(pd.DataFrame(frame))


def test_answers_of_classes_labels_and_numbers():
    classes = TABLE.answer_columns(torch.tensor([[0.0, np.log(3.0)]]))
    assert classes["predicted"].tolist() == ["yes"]
    assert classes["probability yes"].tolist() == pytest.approx([0.75])
    labels = replace(TABLE, targets="labels").answer_columns(torch.tensor([[0.0, np.log(3.0)]]))
    assert [labels[f"probability {name}"].item() for name in ("no", "yes")] == pytest.approx([0.5, 0.75])
    numbers = replace(TABLE, targets="numbers", answers=("cost",), target_columns=(Column("cost", 100.0, 20.0),))
    assert numbers.answer_columns(torch.tensor([[1.5]]))["predicted cost"].tolist() == [130.0]


def write(folder, **changes):
    content = {**TABLE.as_json(), **changes}
    (folder / encoders.NAME).write_text(json.dumps(content))
    return folder


def test_what_was_written_is_read(tmp_path):
    assert read_encoder(write(tmp_path)) == TABLE
    assert read_encoder(write(tmp_path, **REVIEWS.as_json())) == REVIEWS


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scale": 0}, "scale or deviation"),
        ({"scale": "x"}, "scale"),
        ({"mean": [float("inf")]}, "not finite"),
        ({"shape": [4]}, "columns do not make 4 numbers"),
        ({"shape": []}, "shape is"),
        ({"mean": [0.0, 0.0]}, "not of 3 channels"),
        ({"answers": []}, "no answers"),
        ({"targets": "money"}, "targets"),
        ({"dtype": "float8"}, "dtype"),
        ({"columns": [{"name": "age"}]}, "columns is no list of columns"),
        ({"columns": [{**Column("a").__dict__, "mean": "x"}]}, "no list of columns|mean"),
        ({"columns": [{**Column("a").__dict__, "name": 7}, *[Column("b").__dict__] * 2]}, "name"),
        ({"target_columns": [Column("a").__dict__]}, "not as many"),
        ({"text": {"unit": "words", "column": "a"}}, "its text has no tokens"),
        ({"text": {"unit": "lines", "column": "a"}}, "unit"),
        ({"text": "words"}, "text does not say how texts are cut"),
        ({"more": 1}, "has "),
        ({"answers": ["a", "a"]}, "its answers must differ from each other"),
        ({"answers": ["a", "b\n\x1b[31m"]}, "its answers must have no line breaks"),
        ({"columns": [Column("a").__dict__] * 3, "shape": [3]}, "it has 'a' twice"),
        ({"columns": [Column("a", categories=("x", "y", "x")).__dict__], "shape": [3]}, "it has 'x' twice"),
    ],
)
def test_a_damaged_encoder_is_one_line(tmp_path, changes, said):
    with pytest.raises(ConfigError, match=said):
        read_encoder(write(tmp_path, **changes))


def test_a_folder_without_one_is_no_export(tmp_path):
    with pytest.raises(ConfigError, match="fedexp export"):
        read_encoder(tmp_path)
