"""What is written on a terminal: the width of tables, whether bars can be drawn, durations, escaped controls."""

import os
import shutil
import sys
from typing import TextIO

# Of texts that came in a file: an escape sequence could rewrite what stands on the screen. Line breaks and tabs stay.
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def escape_controls(text: str) -> str:
    """A text with its control characters written out."""
    return text.translate(CONTROLS)


def width(wide: bool = False) -> int | None:
    """Columns of the terminal; None if the output goes elsewhere or `wide` asks for everything."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() and not wide else None


def has_size(stream: TextIO) -> bool:
    """False for a terminal that does not know its size, as some programs open them; true for anything else."""
    try:
        return min(os.get_terminal_size(stream.fileno())) > 0
    except (OSError, ValueError):  # not a terminal
        return True


def format_duration(seconds: float) -> str:
    """A duration in the unit that suits it."""
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"
