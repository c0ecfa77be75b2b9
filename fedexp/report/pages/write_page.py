"""Writes a page that people read, in HTML, Markdown or LaTeX, or the table of one as CSV."""

from pathlib import Path

from fedexp.files.atomic import write_atomically
from fedexp.process.terminal import escape_controls


def write_page(path: Path, text: str) -> None:
    """Writes a page, whole or not at all, its control characters written out: it may hold names from a file.

    CSV is for programs and stays as it is.
    """
    write_atomically(path, (text if path.suffix == ".csv" else escape_controls(text)).encode())
