"""CSV files as people write them: on which line a row begins, and whether commas are between its cells."""

import csv
from collections.abc import Iterable, Iterator

OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def rows_with_lines(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file, each with the number of the line it begins on: a quoted cell may hold line breaks.

    Raises:
        csv.Error: quotes are not closed, or stand where none may.
    """
    reader, begin = csv.reader(lines, strict=True), 1
    for row in reader:
        yield begin, row
        begin = reader.line_num + 1


def separated_by(header: str) -> str | None:
    """What is between the cells of a header without commas, in words; None where there are commas or one cell."""
    return None if "," in header else next((word for sign, word in OTHERS.items() if sign in header), None)
