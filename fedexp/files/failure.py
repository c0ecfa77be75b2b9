"""Why a run failed: the traceback that a point of a sweep or a trial leaves in its folder."""

from pathlib import Path

from fedexp.files.untrusted import read_regular

TRACEBACK = "traceback.txt"
_MOST_BYTES = 10_000_000


def read_failure(folder: Path) -> str | None:
    """The words of the error that ended the run of a folder, in a line; None where none did."""
    if not (folder / TRACEBACK).is_file():
        return None
    lines = read_regular(folder / TRACEBACK, _MOST_BYTES).decode(errors="replace").strip().splitlines()
    text = lines[-1].partition(": ")[2] or lines[-1] if lines else ""
    return "".join(sign if sign.isprintable() else "?" for sign in text) or None
