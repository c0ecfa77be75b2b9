import pytest

from fedexp.sweep.repeated_keys import describe_repeated_keys


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rounds=1", "rounds=2"], "rounds is given 2 times: rounds=2, the last one, counts"),
        (["seed=0", "+local.lr=1", "local.lr=2"], "local.lr is given 2 times: local.lr=2, the last one, counts"),
        (["rounds=1,2", "rounds=3", "rounds=3"], "rounds is given 3 times: rounds=3, the last one, counts"),
    ],
)
def test_the_value_that_counts_is_said(words: list[str], sentence: str):
    assert list(describe_repeated_keys(words)) == [sentence]


@pytest.mark.parametrize("words", [["rounds=1", "rounds=1"], ["local=adam", "local.lr=1"], []])
def test_other_words_need_none(words: list[str]):
    assert list(describe_repeated_keys(words)) == []
