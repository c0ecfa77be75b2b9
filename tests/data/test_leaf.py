import pytest

from fedexp.data.leaf import LETTERS, labels, letter, letters, numbers


def test_the_alphabet_is_leafs():
    assert len(LETTERS) == len(set(LETTERS)) == 80
    assert letters(["\n a}", "AZ[ "]).tolist() == [[0, 1, 53, 79], [25, 50, 51, 1]]
    assert letter(["!", "z"]).tolist() == [2, 78]


@pytest.mark.parametrize(
    ("read", "values", "words"),
    [
        (letters, ["abc", "ab"], "one length, got 2 to 3"),
        (letters, ["a#"], "has no '#'"),
        (letter, ["ab"], "must be one letter, got 'ab'"),
        (numbers, [[1.0, float("nan")]], "finite numbers"),
        (numbers, [1.0, 2.0], "lists of equally many"),
        (labels, [3, 0.5], "whole numbers from 0 to 9,999, got 0.5"),
        (labels, [-1], "whole numbers from 0 to 9,999, got -1"),
        (labels, [4e9], r"got 4e\+09"),
        (labels, [1e300], r"got 1e\+300"),
        (labels, [float("inf")], "got inf"),
        (labels, [[1]], r"must be numbers, got \[1\]"),
        (numbers, [[1e300]], "finite numbers"),
        (numbers, [[], []], "equally many"),
    ],
)
def test_what_will_not_do(read, values, words):
    with pytest.raises(ValueError, match=words):
        read(values)
