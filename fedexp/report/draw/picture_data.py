"""The numbers behind a picture: a sentence for who cannot see it, a table, and what is read under the pointer."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedexp.core.join_first import join_first
from fedexp.report.draw.band import choose_evenly
from fedexp.report.draw.markdown import Grid

_MOST_ROWS, _FEWEST_ROWS, _CELLS = 40, 6, 520  # of a table behind a picture
_NAMED = 6  # methods in a sentence


@dataclass(frozen=True)
class PictureData:
    """`text` has the main numbers; `note` says what `table` leaves out.

    `tips` are texts at positions on the horizontal axis of the picture's first axes; a page shows one where the pointer
    rests.
    """

    text: str
    table: Grid
    note: str = ""
    tips: Sequence[tuple[float, str]] = ()


def shorten_table(table: Grid, unit: str = "rows") -> tuple[Grid, str]:
    """Evenly chosen rows of a table, and what it leaves out in words ("" for nothing): 40, of a wide table fewer."""
    most = max(_FEWEST_ROWS, min(_MOST_ROWS, _CELLS // len(table.headings)))
    if len(table.rows) <= most:
        return table, ""
    rows = [table.rows[row] for row in map(int, choose_evenly(len(table.rows), most))]
    return Grid(table.headings, rows, table.texts), f"{len(rows)} of {len(table.rows):,} {unit}."


def of_table(table: Grid, unit: str = "rows", text: str = "") -> PictureData:
    """The data of a picture that shows a table; without a `text` its sentence is the rows themselves.

    Example:
        >>> of_table(Grid(("method", "share"), [("fedavg", "0.5"), ("krum", "0.7")])).text
        'fedavg: share 0.5; krum: share 0.7.'
    """
    shown, note = shorten_table(table, unit)
    return PictureData(text or _read_rows(table), shown, note)


def enumerate_methods(parts: Sequence[str]) -> str:
    """Joins what is said of each method, of the first six only.

    Example:
        >>> enumerate_methods(["a 1", "b 2"])
        'a 1; b 2.'
    """
    return f"{join_first(parts, _NAMED, '; ')}." if parts else ""


def number_text(value: float) -> str:
    """Four digits that matter.

    Example:
        >>> number_text(0.123456), number_text(20.0), number_text(12345.6)
        ('0.1235', '20', '12,346')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _read_rows(table: Grid) -> str:
    sentences = []
    for row in table.rows:
        cells = ", ".join(f"{name} {cell}" for name, cell in zip(table.headings[1:], row[1:], strict=True))
        sentences.append(f"{row[0]}: {cells}")
    return enumerate_methods(sentences)
