import pytest

from fedexp.files.table_names import fault_in_column_names, name_with_control


@pytest.mark.parametrize("name", ["a\nb", "a\r", "\x1b[2J", "a\tb", "\x7f", "\x85", "a\u2028b", "\u2029"])
def test_what_does_not_stay_on_its_line_is_seen(name: str):
    assert name_with_control(["St. Mary", name]) == name
    assert fault_in_column_names(["cat", name], ()) == (
        f"must have no line breaks or other control characters, got {name!r}"
    )


def test_other_names_are_as_they_are():
    names = ['süd, "A"', "a b", "नमस्ते", "a\u200db", "-1", " "]
    assert name_with_control(names) is None
    assert fault_in_column_names(names, ["client"]) is None


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (["a", "client "], "must not be 'client', which is another column of the run's tables"),
        (["a", "b", " a"], "must differ from each other, apart from blanks around them, got 'a' twice"),
    ],
)
def test_columns_need_names_of_their_own(names: list[str], fault: str):
    assert fault_in_column_names(names, ["client", "name"]) == fault
