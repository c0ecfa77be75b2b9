from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from fedexp.core.errors import ConfigError
from fedexp.data.tables import table


def test_a_column_has_one_type_in_all_its_rows(tmp_path):
    rows = "1.0,1\n2.0,1\n" * 150_000  # more than pandas looks at together, unless it is told
    (tmp_path / "mine.csv").write_text(f"ward,sick\n{rows}x,1\n")
    names, _ = table.encode_distinct(table.column(table.read(tmp_path / "mine.csv"), "ward", ""))
    assert names == ["1.0", "2.0", "x"]


def test_whole_numbers_are_not_rounded():
    names, place = table.encode_distinct(pd.Series([2**60 + 1, 2**60, 7]))
    assert names == ["7", str(2**60), str(2**60 + 1)]
    assert place.tolist() == [2, 1, 0]
    assert table.encode_distinct(pd.Series([2**64 - 1, 2**64 - 2], dtype=np.uint64))[1].tolist() == [1, 0]


def test_texts_with_a_nul_at_the_end_are_refused():
    with pytest.raises(ConfigError, match="column who holds a NUL character"):
        table.encode_distinct(pd.Series(["a", "a\0"], name="who"))


def test_decimal_numbers_of_parquet_are_numbers(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    cells = {"price": [Decimal("1.50"), None], "name": ["a", None]}
    parquet.write_table(arrow.table(cells), tmp_path / "mine.parquet")
    frame = table.read(tmp_path / "mine.parquet")
    assert table.numbers(table.column(frame, "price", "")).tolist() == pytest.approx([1.5, np.nan], nan_ok=True)
    assert table.texts(table.column(frame, "name", "")).tolist() == ["a", ""]


@pytest.mark.parametrize("raw", [b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"text"])
def test_parquet_that_is_damaged_is_one_line(tmp_path, raw):
    pytest.importorskip("pyarrow")
    (tmp_path / "mine.parquet").write_bytes(raw)
    with pytest.raises(ConfigError, match=r"mine.parquet cannot be read as a table: .") as caught:
        table.read(tmp_path / "mine.parquet")
    assert "\n" not in str(caught.value)


def test_parquet_whose_texts_are_no_utf8_is_one_line(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    damaged = arrow.array([b"a", b"\xff\xfe"], arrow.binary()).view(arrow.string())
    parquet.write_table(arrow.table({"name": damaged}), tmp_path / "mine.parquet")
    with pytest.raises(ConfigError, match=r"mine.parquet cannot be read as a table: .") as caught:
        table.read(tmp_path / "mine.parquet")
    assert "\n" not in str(caught.value)


def test_a_file_in_latin_1_is_named_with_its_byte(tmp_path):
    (tmp_path / "mine.csv").write_bytes("name,x\nMüller,1\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="must be text in UTF-8, but holds the byte 0xfc; save it as UTF-8"):
        table.read(tmp_path / "mine.csv")


def test_numbers_that_differ_in_their_last_digit_have_names_that_do():
    names, place = table.encode_distinct(pd.Series([0.3, 0.1 + 0.2, 2.0]))
    assert names == ["0.3", "0.30000000000000004", "2.0"]
    assert place.tolist() == [0, 1, 2]
    assert table.encode_distinct(pd.Series([0.1 + 0.2, 2.0]))[0] == ["0.3", "2"]
