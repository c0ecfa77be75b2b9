from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from fedexp.config.override_text import override_text, plain_text, short_text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (True, "true"),
        (1e-05, "1e-05"),
        ([64, 32], "[64,32]"),
        ((0.5,), "[0.5]"),
        ({"a": 1}, "{a:1}"),
        (Path("a/b c"), "'a/b c'"),
        ("it's", r"'it\'s'"),
        ("${seed}", "'${seed}'"),
    ],
)
def test_values_are_written_as_the_command_line_wants_them(value: object, written: str):
    assert override_text(value) == written


@pytest.mark.parametrize(
    "value", ["a\\", "\\\\'", "'", "it's \\", "null", "True", "1", "-2.5e3", "nan", "a b", "", "x=1,y=[2]", "1a"]
)
def test_a_text_comes_back_as_the_text_it_was(value: str):
    (parsed,) = OverridesParser.create().parse_overrides([f"key={override_text(value)}"])
    assert parsed.value() == value
    assert isinstance(parsed.value(), str)


def test_for_reading_nothing_is_quoted():
    assert plain_text(["a b", None, True, 0.1234567]) == "[a b,null,true,0.1234567]"
    assert short_text([1, 0.5, None, True, 0.1234567, 1e-9]) == "[1,0.5,null,true,0.123457,1e-09]"
