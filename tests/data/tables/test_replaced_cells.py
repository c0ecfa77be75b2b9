"""Numbers that are far from those of training are told; other cells that stand for others: tests/predict."""

import pandas as pd

from fedexp.data.tables.encoding import Column
from fedexp.data.tables.replaced_cells import describe_far_numbers

AGE, SEX, BOUNDED = Column("age", 50, 10), Column("sex", categories=("m", "w")), Column("dose", 1, 1, bounds=(0.0, 9.0))


def test_a_number_ten_deviations_off_is_told():
    """150 is exactly ten deviations from the mean, which is not more than ten."""
    frame = pd.DataFrame({"age": [47, 4700, 150, None, -51], "sex": list("mwmwx"), "dose": [1, 99, 1, 1, 1]})
    columns = [AGE, SEX, BOUNDED]
    assert describe_far_numbers(frame, columns) == (
        "numbers are far from those of training, so the answers there mean little: age (2, e.g. 4700; mean 50)"
    )
    assert describe_far_numbers(frame.iloc[[0, 2, 3]], columns) == ""
