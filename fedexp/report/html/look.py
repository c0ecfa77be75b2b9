"""Which colour and which dashes belong to a method: classes of the style sheet, as in the pictures of `report.look`."""

from fedexp.report.look import COLORS

CROWD = 12  # up to so many methods have bands and a legend below each drawing
_DASHES = 4


def stroke(position: int) -> str:
    """The classes of a method's line."""
    return f"c{position % len(COLORS)} d{position // len(COLORS) % _DASHES}"
