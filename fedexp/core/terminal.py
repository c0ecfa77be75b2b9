"""How wide a table may be where somebody reads it."""

import shutil
import sys


def width(wide: bool = False) -> int | None:
    """Columns of the terminal; None where there is none, or where all is wanted."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() and not wide else None
