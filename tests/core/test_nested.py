from fedexp.core.nested import flatten_keys, walk

NESTED = {"a": 1, "b": {"c": {"d": [2]}, "e": None, "f": {}}}


def test_the_values_by_their_dotted_keys():
    assert flatten_keys(NESTED) == {"a": 1, "b.c.d": [2], "b.e": None}
    assert flatten_keys({}) == {}
    assert flatten_keys({1: {2: "x"}}) == {"1.2": "x"}


def test_every_key_before_what_is_in_it():
    assert [key for key, _ in walk(NESTED)] == ["a", "b", "b.c", "b.c.d", "b.e", "b.f"]
    assert dict(walk(NESTED))["b.c"] == {"d": [2]}
