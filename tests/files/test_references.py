"""What a config repeats of itself is counted before it is resolved."""

from typing import Any

import pytest

from fedexp.files.references import UNBOUNDED, count_lookups

CASES = [
    ({"a": 1, "b": 2}, 3),
    ({"a": 1, "b": "${a}"}, 4),  # the root, a, b and what b reads
    ({"a": 1, "b": "${a}${a}", "c": "${b}${b}"}, 1 + 1 + 3 + 7),
    ({"a": {"x": 1, "y": "${.x}"}}, 5),
    ({"a": {"x": 1, "y": {"z": "${..x}"}}}, 6),
    ({"a": [1, "${a[0]}"]}, 5),
    ({"a": {"x": 1}, "b": "${f:${a.x},${a}}"}, 1 + 2 + (1 + 1 + 1 + 2)),
    ({"a": "${b}", "b": "${a}"}, 6),
    ({"a": "${nowhere}"}, 3),
    ("text", 1),
]


@pytest.mark.parametrize(("config", "count"), CASES)
def test_every_value_that_is_read_counts(config: object, count: int):
    assert count_lookups(config) == count


def test_a_bomb_is_counted_without_being_lit():
    config = {"a0": "1", **{f"a{n}": f"${{a{n - 1}}}${{a{n - 1}}}" for n in range(1, 100)}}
    assert count_lookups(config) > 2**99


def test_a_name_that_another_value_makes_is_beyond_all_bounds():
    small: dict[str, Any] = {"k0": "x", "n0": "k0"}
    for number in range(1, 5):
        small |= {f"k{number}": f"${{${{n{number - 1}}}}}${{${{n{number - 1}}}}}", f"n{number}": f"k{number}"}
    assert count_lookups(small) >= UNBOUNDED
    assert count_lookups({"a": "${data_root:${b}}", "b": "x"}) < 10
