"""Writes a page that people read, in HTML, Markdown or LaTeX."""

from pathlib import Path

from fedexp.files.atomic import write_atomically
from fedexp.process.terminal import escape_controls


def write_page(path: Path, text: str) -> None:
    """Writes a page, whole or not at all, its control characters written out: it may hold names from a file."""
    write_atomically(path, escape_controls(text).encode())
