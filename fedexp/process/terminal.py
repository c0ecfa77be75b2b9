"""What is written on a terminal: texts without controls, the width of tables, whether bars can be drawn, durations."""

import logging
import os
import shutil
import sys
from typing import TextIO

# Of texts that came in a file: an escape sequence could rewrite what stands on the screen, and so could a change of the
# direction of writing (U+202A to U+202E, U+2066 to U+2069). Line breaks and tabs stay.
_CODES = (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
CONTROLS = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CODES if chr(code) not in "\n\t"}


def escape_controls(text: str) -> str:
    """A text with its control characters written out."""
    return text.translate(CONTROLS)


def print_text(text: str) -> None:
    """Prints a text at once, its control characters written out: it may hold names from a file."""
    sys.stdout.write(escape_controls(text))
    sys.stdout.flush()


class EscapedFormatter(logging.Formatter):
    """Writes out the control characters of log lines."""

    def format(self, record: logging.LogRecord) -> str:
        """The line as it is printed, or written to a file that somebody may print."""
        return escape_controls(super().format(record))


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
