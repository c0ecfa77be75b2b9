"""How wide a table may be where somebody reads it, and whether there is room for a bar."""

import os
import shutil
import sys
from typing import TextIO


def width(wide: bool = False) -> int | None:
    """Columns of the terminal; None where there is none, or where all is wanted."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() and not wide else None


def has_size(stream: TextIO) -> bool:
    """Whether a terminal says how large it is; some that programs open do not, and show no bar."""
    try:
        return min(os.get_terminal_size(stream.fileno())) > 0
    except (OSError, ValueError):  # no file
        return True
