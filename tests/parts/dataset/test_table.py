import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.data.tables import columns
from fedexp.parts.dataset import check_data, table
from fedexp.parts.dataset.table import OwnTable

ROWS = """age,sex,ward,kept,sick,days,fever
10,f,north,train,yes,1,0
30,m,south,train,no,3,1
30,d,north,test,no,9,1
"""


@pytest.fixture
def mine(tmp_path):
    def make(text=ROWS, **options):
        (tmp_path / "mine.csv").write_text(text)
        words: dict[str, Any] = {"target": "sick", "split": "kept"} | options
        return OwnTable(file=tmp_path / "mine.csv", **words)

    return make


def loaded(dataset, directory):
    """The data, if it is what its facts say."""
    data = dataset.load(directory, 0)
    check_data.refuse(dataset, dataset.facts(directory), data)
    return data


def test_numbers_are_standardised_and_texts_become_columns_by_the_training_rows(mine, tmp_path):
    dataset = mine(client="ward", ignore=["days", "fever"])
    data, facts = loaded(dataset, tmp_path), dataset.facts(tmp_path)
    # age has mean 20 and deviation 10 in training; sexes there are f and m, so d is neither
    assert data.train.x.tolist() == [[-1, 1, 0], [1, 0, 1]]
    assert data.test.x.tolist() == [[1, 0, 0]]
    assert data.class_names == ("no", "yes")
    assert data.train.y.tolist() == [1, 0]
    assert data.train.subject.tolist() == [0, 1]
    assert data.test.subject.tolist() == [0]
    assert (facts.shape, facts.classes, facts.train_size, facts.subjects) == ((3,), 2, 2, 2)
    assert "2 training rows of 3 numbers, 2 classes" in dataset.verify(tmp_path)[0]


def test_several_numbers_to_predict_by_deviations_or_raw(mine, tmp_path):
    dataset = mine(target=["days", "fever"], predicts="numbers", ignore=["sick"])
    data = loaded(dataset, tmp_path)
    assert data.train.y.tolist() == [[-1, -1], [1, 1]]  # days: mean 2, deviation 1; fever: 0.5 and 0.5
    assert data.test.y.tolist() == [[7, 1]]
    assert data.class_names == ("days", "fever")
    raw = loaded(mine(target="days", predicts="numbers", target_scale="raw"), tmp_path)
    assert raw.train.y.tolist() == [[1], [3]]


def test_labels_are_columns_of_0_and_1(mine, tmp_path):
    data = loaded(mine(target=["fever"], predicts="labels"), tmp_path)
    assert data.train.y.tolist() == [[0], [1]]
    with pytest.raises(ConfigError, match=r"column days must hold nothing but 0 and 1, since dataset.predicts=labels"):
        mine(target=["fever", "days"], predicts="labels").require(tmp_path)


def test_test_rows_are_a_share_of_each_class_the_same_for_every_seed(mine, tmp_path):
    frame = pd.DataFrame({"x": np.arange(50.0), "y": ["a"] * 40 + ["b"] * 10})
    dataset = mine(frame.to_csv(index=False), target="y", split=None)
    one, other = dataset.load(tmp_path, 0), dataset.load(tmp_path, 1)
    assert one.test.y.bincount().tolist() == [8, 2]
    assert torch.equal(one.test.x, other.test.x)


def test_parquet_holds_the_same_table(mine, tmp_path):
    pytest.importorskip("pyarrow")
    csv = mine(client="ward")
    frame = pd.read_csv(tmp_path / "mine.csv").astype({"sex": "category"})
    frame.to_parquet(tmp_path / "mine.parquet")
    parquet = OwnTable(file=tmp_path / "mine.parquet", target="sick", split="kept", client="ward")
    assert parquet.load(tmp_path, 0).sha256() == csv.load(tmp_path, 0).sha256()


def test_parquet_without_its_reader_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "mine.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(pd, "read_parquet", lambda path: __import__("pyarrow"))
    with pytest.raises(ConfigError, match="pip install pyarrow"):
        OwnTable(file=tmp_path / "mine.parquet", target="y").require(tmp_path)


def test_missing_values_are_refused_or_filled(mine, tmp_path):
    gaps = "age,sex,kept,sick\n10,f,train,yes\n,,train,no\n30,m,train,no\n,m,test,no\n"
    with pytest.raises(
        ConfigError, match=r"column age lacks a value in 2 of 4 rows; set dataset.missing=fill or .*age"
    ):
        mine(gaps).require(tmp_path)
    data = loaded(mine(gaps, missing="fill"), tmp_path)
    assert data.train.x.tolist() == [[-1, 1, 0], [0, 0, 0], [1, 0, 1]]
    assert data.test.x.tolist() == [[0, 0, 1]]
    with pytest.raises(ConfigError, match="column sex lacks a value in 1 of 4 rows; give every row one"):
        mine(gaps, target="sex", missing="fill").require(tmp_path)


def test_client_names_are_numbered_as_numbers_where_they_are(mine, tmp_path):
    data = loaded(mine(ROWS.replace("north", "10").replace("south", "9"), client="ward"), tmp_path)
    assert data.train.subject.tolist() == [1, 0]


def test_the_file_is_read_once_until_it_changes(mine, tmp_path, monkeypatch):
    reads = []
    plain = table.columns.read
    monkeypatch.setattr(table.columns, "read", lambda path, texts: reads.append(path) or plain(path, texts))
    dataset = mine()
    for _ in range(3):
        dataset.facts(tmp_path)
    dataset.load(tmp_path, 0)
    assert len(reads) == 1
    os.utime(tmp_path / "mine.csv", ns=(1, 1))
    dataset.load(tmp_path, 0)
    assert len(reads) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "sik"}, r"dataset.target must name a column of the table, got sik; did you mean sick"),
        ({"client": "wrd"}, "dataset.client must name a column"),
        ({"ignore": ["agee"]}, "dataset.ignore must name a column"),
        ({"split": "sex"}, "column sex must hold train or test in every row, got 'd'"),
        ({"predicts": "numbers"}, "column sick must hold numbers, since dataset.predicts=numbers, got text; set "),
        ({"target": "kept", "split": None}, "a test row, got 0 of 3"),
        (
            {"target": "sex"},
            "hold every class in the training rows, but d is in test rows alone; call some of them train, or leave "
            "them out",
        ),
        ({"ignore": ["age", "sex", "ward", "days", "fever"]}, "must have a column to predict sick from"),
    ],
)
def test_what_will_not_do_is_one_line(mine, tmp_path, options, words):
    with pytest.raises(ConfigError, match=words) as caught:
        mine(**options).require(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age,sick,kept\n1,a,train\n1,b,test\n2,a,test\n", "must give two training rows and a test row, got 2 of 3"),
        ("age,sick,kept\n", "at least one row"),
        (
            "age;sick;kept\n1,5;a;train\n2,5;b;test\n",
            "must have commas between its cells, got semicolons; save it with",
        ),
        ("", "cannot be read as a table"),
        ("age,sick,kept\n1,2,3,4,5\n1\n,,,,,,,\n", "cannot be read as a table"),
        ("age,sick,kept\ninf,a,train\n1,b,train\n1,a,test\n", "column age must be finite, but is infinite in 1 of 3"),
        ("age,sick,kept\n1,a,train\n2,a,test\n", "column sick must hold 2 to 1,000 classes, got 1"),
        (
            "age,sick,kept\n1,a,train\n2,b,train\n1e300,a,test\n",
            r"column age, in deviations .* 3e38, .* 1 of 3 numbers do not; correct them or set dataset.ignore=\[age\]",
        ),
        (
            "age,sick,kept\n1,5,train\n2,6,train\n3,7,test\n4,5,test\n5,6,test\n6,7,test\n",
            "but 7 is in test rows alone; to predict its numbers set dataset.predicts=numbers loss=mse, else call ",
        ),
        ("age,sick,kept\n1,a,train\n2,b\0,train\n1,a,test\n", "column sick holds a NUL character"),
    ],
)
def test_files_that_will_not_do(mine, tmp_path, text, words):
    with pytest.raises(ConfigError, match=words):
        mine(text).require(tmp_path)


def test_columns_of_the_largest_numbers_are_standardised_like_others(mine, tmp_path):
    text = "age,sick,kept\n1e308,a,train\n-1e308,b,train\n1e308,a,test\n"
    assert loaded(mine(text), tmp_path).train.x.tolist() == [[1], [-1]]
    text = "age,sick,kept\n1e-300,a,train\n3e-300,b,train\n5e-300,a,test\n"
    assert loaded(mine(text), tmp_path).test.x.tolist() == [[3]]


def test_whole_numbers_beyond_64_bits_are_numbers(mine, tmp_path):
    text = ROWS.replace("10,f", "20000000000000000000,f").replace("30,m", "60000000000000000000,m")
    dataset = mine(text, ignore=["days", "fever", "ward", "sex"])
    assert loaded(dataset, tmp_path).train.x.tolist() == [[-1], [1]]
    declared = loaded(mine(text, ignore=["days", "fever", "ward", "sex"], categories=["age"]), tmp_path)
    assert declared.columns[0].categories == ("20000000000000000000", "60000000000000000000")


def test_targets_beyond_float32_are_refused(mine, tmp_path):
    text = "age,cost,kept\n1,1e300,train\n2,3,train\n1,2,test\n"
    assert loaded(mine(text, target="cost", predicts="numbers"), tmp_path).train.y.tolist() == [[1], [-1]]
    with pytest.raises(ConfigError, match=r"column cost must stay below 3e38, .* 1 of 3 numbers do not; correct them"):
        mine(text, target="cost", predicts="numbers", target_scale="raw").require(tmp_path)


def test_clients_with_large_numbers_are_kept_apart(mine, tmp_path):
    large = ROWS.replace("north", "9007199254740993").replace("south", "9007199254740992")
    assert loaded(mine(large, client="ward"), tmp_path).train.subject.tolist() == [1, 0]


def test_numbers_that_make_no_classes_are_to_be_predicted(mine, tmp_path):
    rows = "".join(f"{number},{number % 7 + 0.01 * number}\n" for number in range(40)) + "3,0\n"
    dataset = mine("age,price\n" + rows, target="price", split=None)
    words = (
        "column price makes 39 classes of one row each; to predict its numbers set dataset.predicts=numbers loss=mse"
    )
    with pytest.raises(ConfigError, match=words):
        dataset.require(tmp_path)
    with pytest.raises(
        ConfigError, match=r"got 0 of 4 for testing; raise dataset.test_fraction, a share of each class"
    ):
        mine("age,name\n1,a\n2,b\n3,a\n4,b\n", target="name", split=None).require(tmp_path)


def test_numbers_that_are_hardly_classes_may_be_predicted_as_numbers(mine, tmp_path):
    text = "age,price\n1,2\n2,2\n3,5\n4,5\n5,7\n6,7\n"  # two rows a class, of which a fifth is none
    with pytest.raises(
        ConfigError, match=r"to predict its numbers set dataset\.predicts=numbers loss=mse, else raise "
    ):
        mine(text, target="price", split=None).require(tmp_path)


def test_a_column_of_names_is_no_category(mine, tmp_path):
    rows = "".join(f"{number},p{number},{number % 2},train\n" for number in range(1100))
    with pytest.raises(ConfigError, match=r"at most 1,000 categories, got 1,100; set dataset.ignore=\[name\]"):
        mine("age,name,sick,kept\n" + rows + "1,p1,0,test\n").require(tmp_path)


def test_wrong_words(tmp_path):
    with pytest.raises(ConfigError, match="one column where classes are predicted"):
        OwnTable(file=Path("x.csv"), target=("a", "b"))
    with pytest.raises(ConfigError, match=r"dataset.file must be a .csv or .parquet file, but there is no x.csv"):
        OwnTable(file=Path("x.csv"), target="a").require(tmp_path)
    (tmp_path / "x.txt").write_text("a")
    with pytest.raises(ConfigError, match=r"must end in .csv or .parquet, got x.txt"):
        OwnTable(file=Path("x.txt"), target="a").require(tmp_path)
    with pytest.raises(ConfigError, match="no source"):
        OwnTable(file=Path("x.csv"), target="a").download(tmp_path)


def test_lines_with_more_cells_than_the_header_are_refused(tmp_path):
    (tmp_path / "mine.csv").write_text("a,sick\n1,0,9\n2,1,9\n3,0,9\n")
    with pytest.raises(ConfigError, match=r"mine\.csv cannot be read as a table: Length of header or names"):
        OwnTable(file=tmp_path / "mine.csv", target="sick").facts(tmp_path)


@pytest.mark.parametrize("header", ["y,y,x", "x,y,y", "y, y,x", "\ufeffy,y,x", "\n\ny,y,x", 'y,"y",x', "x,,"])
def test_columns_of_one_name_are_refused_lest_the_target_is_a_feature(mine, tmp_path, header):
    rows = "".join(f"{number % 2},{number % 2},{number % 2}\n" for number in range(20))
    name = "2 have none" if header == "x,," else "2 are named y"
    with pytest.raises(
        ConfigError, match=rf"mine\.csv must have a name of its own for each column, but {name}; rename "
    ):
        mine(f"{header}\n{rows}", target="y" if "y" in header else "x", split=None).require(tmp_path)


def test_names_that_differ_in_case_are_different_names(mine, tmp_path):
    assert mine("Y,y\n" + "0,1\n1,0\n" * 9, target="y", split=None).facts(tmp_path).shape == (1,)


def test_a_column_is_named_once():
    with pytest.raises(ConfigError, match=r"target must name each column once, got \['a', 'a'\]; leave the rest out"):
        OwnTable(file=Path("x.csv"), target=("a", "a"), predicts="numbers")
    with pytest.raises(ConfigError, match=r"ignore must name each column once, got \['a', 'a'\]; leave the rest out"):
        OwnTable(file=Path("x.csv"), target="y", ignore=("a", "a"))


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}])
def test_columns_of_lists_and_dicts_are_refused(tmp_path, cell):
    pytest.importorskip("pyarrow")
    file = tmp_path / "mine.parquet"
    pd.DataFrame({"x": [cell] * 20, "z": 1.0, "y": [0, 1] * 10}).to_parquet(file)
    words = r"column x must hold one number or text in each row, got lists or dicts; .* dataset\.ignore=\[x\]"
    for client in (None, "x"):
        with pytest.raises(ConfigError, match=words):
            OwnTable(file=file, target="y", client=client).require(tmp_path)
    assert OwnTable(file=file, target="y", ignore=("x",)).facts(tmp_path).shape == (1,)


def test_many_columns_are_encoded_together_each_as_if_it_were_alone(mine, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 7)) * 10.0 ** np.arange(7), columns=list("abcdefg"))
    frame.insert(3, "word", rng.choice(["p", "q"], 150))
    frame["y"] = rng.integers(0, 2, 150)
    together = mine(frame.to_csv(index=False), target="y", split=None).load(tmp_path, 0)
    blocks = []
    monkeypatch.setattr(columns, "_fit_numbers", lambda block, *_, **__: blocks.append(block.shape) or {})
    table._parse.cache_clear()
    alone = mine(frame.to_csv(index=False), target="y", split=None).load(tmp_path, 0)
    assert together.sha256() == alone.sha256()
    assert blocks == [(150, 7)]


PUBLIC = """age,sex,days,fever,sick
0,m,0,0,no
100,x,100,1,yes
"""


def test_public_rows_say_how_columns_are_encoded(mine, tmp_path):
    (tmp_path / "public.csv").write_text(PUBLIC)
    public = {"statistics": "public", "public_file": tmp_path / "public.csv"}
    data = mine(ignore=["days", "fever", "ward"], **public).load(tmp_path, 0)
    assert data.train.x.tolist() == pytest.approx(np.array([[-0.8, 0, 0], [-0.4, 1, 0]]))  # mean 50, deviation 50; m, x
    numbers = mine(target="days", predicts="numbers", ignore=["sick", "fever", "ward"], **public).load(tmp_path, 0)
    assert numbers.train.y.tolist() == pytest.approx(np.array([[-0.98], [-0.94]]))


def test_ranges_clip_and_scale_without_a_look_at_the_rows(mine, tmp_path):
    ranges = {"age": [0, 20], "sex": ["f", "m"]}
    data = mine(statistics="clipped", ranges=ranges, ignore=["days", "fever", "ward"]).load(tmp_path, 0)
    assert data.train.x.tolist() == [[0, 1, 0], [1, 0, 1]]  # 10 is the middle, 30 beyond the end
    assert data.test.x.tolist() == [[1, 0, 0]]  # nobody told of d


def test_another_client_s_rows_change_nothing_but_where_they_are_pooled(mine, tmp_path):
    ranges = {"age": [0, 100], "sex": ["f", "m"]}
    (tmp_path / "public.csv").write_text(PUBLIC)
    more = ROWS + "90,z,south,train,no,50,1\n"
    for words, is_same in (
        ({}, False),
        ({"statistics": "clipped", "ranges": ranges}, True),
        ({"statistics": "public", "public_file": tmp_path / "public.csv"}, True),
    ):
        rows = [
            mine(text, ignore=["days", "fever", "ward"], **words).load(tmp_path, 0).train.x for text in (ROWS, more)
        ]
        assert torch.equal(rows[0], rows[1][:2, : rows[0].shape[1]]) == is_same
        dataset = mine(ignore=["days", "fever", "ward"], **words)
        assert bool(dataset.leaks()) != is_same


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"statistics": "public"}, "dataset.public_file goes with dataset.statistics=public; give both or neither"),
        ({"ranges": {"age": [0, 1]}}, "dataset.ranges goes with dataset.statistics=clipped"),
        ({"statistics": "clipped", "ranges": {"age": [0, 9]}}, "must hold every column, but lacks sex"),
        ({"statistics": "clipped", "ranges": {"age": [9, 0]}}, r"dataset.ranges.age must be \[LOW,HIGH\], two rising"),
        (
            {"statistics": "clipped", "ranges": {"age": [0, 9], "sex": ["f"], "size": [0, 1]}},
            "must name columns .* size",
        ),
    ],
)
def test_half_said_statistics_are_one_line(mine, tmp_path, words, said):
    if "age" in words.get("ranges", {}) and words["ranges"]["age"] == [9, 0]:
        words["ranges"]["sex"] = ["f", "m"]
    with pytest.raises(ConfigError, match=said):
        mine(ignore=["days", "fever", "ward"], **words).load(tmp_path, 0)


@pytest.mark.parametrize("source", ["clipped", "public"])
def test_codes_that_look_like_numbers_are_the_given_categories(mine, tmp_path, source):
    text = "zip,sick\n" + "01234,no\n02345,yes\n" * 5
    (tmp_path / "public.csv").write_text("zip,sick\n01234,no\n02345,yes\n0A345,yes\n")
    given = {
        "clipped": {"statistics": "clipped", "ranges": {"zip": ["01234", "02345"]}},
        "public": {"statistics": "public", "public_file": tmp_path / "public.csv"},
    }
    data = mine(text, split=None, **given[source]).load(tmp_path, 0)
    assert data.columns[0].categories[:2] == ("01234", "02345")
    assert (data.train.x[:, :2].sum(dim=1) == 1).all()
    assert torch.equal(data.train.x[:, 1].long(), data.train.y)


def test_a_public_table_lacks_a_column(mine, tmp_path):
    (tmp_path / "public.csv").write_text("age,days\n1,2\n3,4\n")
    with pytest.raises(ConfigError, match=r"dataset\.public_file must have the columns of the table, but lacks sex"):
        mine(ignore=["days", "fever", "ward"], statistics="public", public_file=tmp_path / "public.csv").load(
            tmp_path, 0
        )


def test_the_promise_says_what_the_table_tells(tmp_path):
    from fedexp import run

    rows = "\n".join(f"{n},{n % 3},{'yes' if n % 2 else 'no'}" for n in range(60))
    (tmp_path / "rows.csv").write_text(f"a,b,sick\n{rows}\n")
    words = ["dataset=table", f"dataset.file={tmp_path / 'rows.csv'}", "dataset.target=sick", "model=mlp", "rounds=1"]
    words += ["privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3", "pictures=false"]
    words += ["scenario.clients=2", "local.batch_size=full"]
    pooled = run(*words, folder=tmp_path / "pooled", quiet=True).summary["privacy"]["promise"]
    assert pooled.endswith(
        "not covered, nor are means, deviations and categories of all training rows, which encode the table"
    )
    ranges = ["dataset.statistics=clipped", "dataset.ranges={a: [0,60], b: [0,2]}"]
    assert (
        run(*words, *ranges, folder=tmp_path / "clipped", quiet=True)
        .summary["privacy"]["promise"]
        .endswith("not covered")
    )


def test_an_id_is_refused_by_name_and_kept_if_it_is_declared(mine, tmp_path):
    rows = "".join(f"P{number},{number % 3},{'no' if number % 2 else 'yes'}\n" for number in range(40))
    text = f"name,ward,sick\n{rows}"
    with pytest.raises(ConfigError, match=r"column name has another text in most rows .*dataset.ignore=\[name\]"):
        mine(text, split=None).load(tmp_path, 0)
    data = loaded(mine(text, split=None, categories=["name", "ward"]), tmp_path)
    assert [len(column.categories or ()) for column in data.columns] == [32, 3], (
        "names of the training rows, three wards"
    )


def test_numbers_of_a_parquet_file_that_are_categories(mine, tmp_path):
    dataset = mine()
    pd.read_csv(tmp_path / "mine.csv").to_parquet(tmp_path / "mine.parquet")
    options = {"target": "sick", "split": "kept", "ignore": ["sex", "ward", "fever", "age"], "categories": ["days"]}
    data = loaded(OwnTable(file=tmp_path / "mine.parquet", **options), tmp_path)
    assert dataset.target == "sick"
    assert data.columns[0].categories == ("1", "3")


def test_an_unknown_category_column_is_named(mine, tmp_path):
    with pytest.raises(ConfigError, match=r"dataset.categories must name a column of the table, got wards"):
        mine(categories=["wards"]).load(tmp_path, 0)


@pytest.mark.parametrize("name", ["sick", "kept", "age"])
def test_a_column_that_is_no_input_has_no_categories(mine, tmp_path, name):
    with pytest.raises(ConfigError, match=f"dataset.categories must name columns that are predicted from, got {name}"):
        mine(categories=[name], ignore=["age"]).load(tmp_path, 0)


def test_doubts_are_sentences_of_the_data(mine, tmp_path):
    rows = "".join(f"{number},{number % 3},{'no' if number % 2 else 'yes'}\n" for number in range(40))
    (doubt,) = loaded(mine(f"id,ward,sick\n{rows}", split=None), tmp_path).doubts
    assert doubt.startswith("column id has another whole number in every row")


def test_cells_that_are_replaced_in_training_are_counted(mine, tmp_path):
    rows = "".join(
        f"{'' if n % 4 == 0 else 40 + n},{'None' if n % 3 else 'daily'},{'no' if n % 2 else 'yes'}\n" for n in range(40)
    )
    data = loaded(mine(f"age,smoking,sick\n{rows}", split=None, missing="fill"), tmp_path)
    (doubt,) = [text for text in data.doubts if "missing" in text]
    assert doubt.startswith(
        "30 of 40 rows have cells that the model cannot take as they are: missing in age (10), smoking (26)"
    )
    assert doubt.endswith("; a number that is missing becomes the training mean, a text no category")
