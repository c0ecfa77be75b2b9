"""The width of a terminal for tables, and whether a bar can be drawn on it."""

import os
import shutil
import sys
from typing import TextIO


def width(wide: bool = False) -> int | None:
    """Columns of the terminal; None if the output goes elsewhere or `wide` asks for everything."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() and not wide else None


def has_size(stream: TextIO) -> bool:
    """False for a terminal that does not know its size, as some programs open them; true for anything else."""
    try:
        return min(os.get_terminal_size(stream.fileno())) > 0
    except (OSError, ValueError):  # not a terminal
        return True
