"""Which columns of a table are doubted, each rule at its edge."""

import numpy as np
import pandas as pd
import pytest

from fedexp.core.errors import ConfigError
from fedexp.data.tables.category_checks import demand_categories, describe_doubts


def check(texts, **options):
    entries = np.array(texts)
    demand_categories("x", entries, np.unique(entries[entries != ""]), **options)


def test_names_are_no_categories_unless_they_are_declared():
    names = [f"P{number}" for number in range(11)]
    with pytest.raises(
        ConfigError, match=r"another text in most rows \(11 texts, such as 'P0'\).*dataset.ignore=\[x\]"
    ):
        check(names + ["P0"] * 10)
    check(names + ["P0"] * 11)  # half of the rows
    check(names, declared=True)
    check(names[:10])  # ten are few


def test_empty_cells_are_no_rows():
    with pytest.raises(ConfigError, match="another text in most rows"):
        check([f"P{number}" for number in range(11)] + [""] * 90)


def test_numbers_with_a_damaged_cell():
    numbers = [str(number) for number in range(20)] * 5
    with pytest.raises(
        ConfigError, match=r"among its 20 different numbers stands 'n/a'; correct .* dataset.categories"
    ):
        check([*numbers, "n/a"])
    check([*numbers, "n/a"], declared=True)
    check(numbers + [f"V{number}" for number in range(20)] * 5)  # as many texts as numbers


def test_a_thousand_categories_are_the_most():
    texts = [f"P{number}" for number in range(1001)] * 3
    check(texts[1:1001] * 3)
    with pytest.raises(ConfigError, match="at most 1,000 categories, got 1,001"):
        check(texts, declared=True)


def test_doubts():
    frame = pd.DataFrame(
        {"id": range(12), "age": [1, 1, *range(10)], "weight": np.linspace(0, 1, 12), "sick": [0, 1] * 6}
    )
    assert list(describe_doubts(frame, ["id", "age", "weight"], "sick")) == [
        "column id has another whole number in every row, like an id; leave it out by dataset.ignore"
    ]
    assert list(describe_doubts(frame, ["age"], None)) == []
    (doubt,) = describe_doubts(frame, [], "id")
    assert doubt == (
        "each of the 12 numbers of column id is a class; to predict the numbers set dataset.predicts=numbers loss=mse"
    )


def test_a_decimal_comma_is_named():
    with pytest.raises(
        ConfigError, match=r"must have a point in its decimal numbers, got '1,5'; write 1.5, or, if these"
    ):
        check([str(number) for number in range(20)] + ["1,5"])


def test_texts_of_test_rows_count():
    texts = np.array([f"P{number}" for number in range(12)])
    with pytest.raises(ConfigError, match="another text in most rows"):
        demand_categories("x", texts, texts[:4])
