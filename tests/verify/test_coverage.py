import pytest

from fedexp.verify.coverage import spans


@pytest.mark.parametrize(
    ("numbers", "told"), [([4], "4"), ([1, 2], "1, 2"), ([1, 2, 3, 5, 7, 8], "1-3, 5, 7, 8"), ([2, 9], "2, 9")]
)
def test_numbers_are_told_in_spans(numbers: list[int], told: str):
    assert spans(numbers) == told
