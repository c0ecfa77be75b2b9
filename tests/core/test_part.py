from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.part import Fraction, Part, Positive, Range


class Inner(Part):
    rate: Annotated[float, Positive] = 1.0


class Outer(Part):
    count: Annotated[int, Range(0)]
    share: Annotated[float, Fraction] = 0.5
    size: Annotated[int, Range(1)] | Literal["full"] = 1
    mode: Literal["a", "b"] = "a"
    widths: tuple[Annotated[int, Range(1)], ...] = ()
    place: Path = Path()
    flag: bool = False
    passes: Annotated[int, Range(1)] | Annotated[float, Positive] | tuple[int, ...] | None = None
    inner: Inner = Inner()


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("count", -1, "an integer >= 0"),
        ("count", 1.0, "an integer >= 0"),
        ("count", True, "an integer >= 0"),
        ("count", "3", "an integer >= 0"),
        ("count", None, "an integer >= 0"),
        ("share", 1.5, "a number in [0, 1]"),
        ("share", float("nan"), "a number in [0, 1]"),
        ("size", 0, "an integer >= 1 or one of full"),
        ("size", "ful", "an integer >= 1 or one of full"),
        ("mode", "c", "one of a, b"),
        ("widths", [1, 0], "a list (each an integer >= 1)"),
        ("widths", "12", "a list (each an integer >= 1)"),
        ("flag", 1, "true or false"),
        ("place", 3, "a path"),
        ("passes", 0, "an integer >= 1, a number > 0, a list (each an integer) or null"),
    ],
)
def test_a_wrong_value_is_told_in_one_line(field: str, value: Any, wanted: str):
    with pytest.raises(ConfigError) as told:
        Outer(**{"count": 1, field: value})
    assert str(told.value) == f"Outer.{field} must be {wanted}, got {value!r}"


def test_values_are_converted_to_what_the_field_says():
    part = Outer(count=2, share=1, widths=[3, 4], place="x", size="full")  # pyright: ignore[reportArgumentType]
    assert (part.share, type(part.share), part.widths, part.place) == (1.0, float, (3, 4), Path("x"))


def test_an_open_bound():
    with pytest.raises(ConfigError, match=r"Inner.rate must be a number > 0, got 0"):
        Inner(rate=0)


@pytest.fixture
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "find_class", lambda target, key: {"Outer": Outer, "Inner": Inner}[target])


@pytest.mark.usefixtures("_ours")
def test_build_names_the_key():
    node = {"_target_": "Outer", "count": 1, "inner": {"_target_": "Inner", "rate": -2}}
    with pytest.raises(ConfigError) as told:
        spec.build(node, "outer")
    assert str(told.value) == "outer.inner.rate must be a number > 0, got -2"
    assert spec.build({**node, "inner": {"_target_": "Inner", "rate": 2}}).inner == Inner(rate=2)


@pytest.mark.usefixtures("_ours")
@pytest.mark.parametrize(
    ("node", "line"),
    [
        ({"count": 1, "shar": 0.1}, "unknown key x.shar; did you mean share?"),
        ({}, "x.count must be given; set x.count=..."),
        ({"count": "???"}, "x.count must be given; set x.count=..."),
    ],
)
def test_build_refuses_unknown_and_missing_keys(node: dict[str, Any], line: str):
    with pytest.raises(ConfigError) as told:
        spec.build({"_target_": "Outer", **node}, "x")
    assert str(told.value) == line


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "nowhere.at.all.Thing",
        "fedexp.core.errors.did_you_mean",
        "fedexp.nowhere.Thing",
        "fedexp.core.part.Nothing",
        "fedexp",
    ],
)
def test_only_parts_can_be_named(target: str):
    with pytest.raises(ConfigError, match=r"key\._target_ must"):
        spec.find_class(target, "key")


@pytest.mark.parametrize(
    "target", [3, None, "", "x", "..x", "a.b c", True, 1.5, [1], {"a": 1}, "x.", "fedexp..part.Part"]
)
def test_a_target_that_is_no_dotted_name(target: object):
    with pytest.raises(ConfigError, match=r"^model._target_ must name a part as module.Class, got "):
        spec.find_class(target, "model")


@pytest.mark.parametrize(
    "target",
    [
        *("fedexp.spec.Part", "fedexp.core.part.Part", "os.system", "json.JSONDecoder"),
        *("fedexp.parts.selector.nowhere.Nowhere", "fedexp.parts.selector.random.Nowhere"),
    ],
)
def test_a_target_that_is_no_part(target: str):
    with pytest.raises(ConfigError, match=r"^model._target_ must name a part, but "):
        spec.find_class(target, "model")
