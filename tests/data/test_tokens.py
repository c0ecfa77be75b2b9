from fedexp.data.tokens import encode_tokens, tokenize, vocabulary


def test_characters_and_words():
    assert tokenize("No, 2x", "characters") == ["N", "o", ",", " ", "2", "x"]
    assert tokenize("No, 2x it's", "words") == ["No", ",", "2x", "it", "'", "s"]


def test_the_most_frequent_first_then_by_alphabet_and_all_others_unknown():
    names = vocabulary([["b", "a", "c"], ["c", "d"]], 3)
    assert names == ("<unk>", "c", "a", "b")
    assert encode_tokens(["d", "b", "c"], {name: number for number, name in enumerate(names)}).tolist() == [0, 3, 1]
