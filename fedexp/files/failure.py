"""Why a run failed: the traceback that a point of a sweep or a trial leaves in its folder."""

import re
from pathlib import Path

from fedexp.core.errors import MAX_MESSAGE, ConfigError
from fedexp.files import run_tables
from fedexp.files.untrusted import read_regular

TRACEBACK = "traceback.txt"
_MOST_BYTES = 10_000_000
_ERROR = re.compile(r"[A-Za-z_][\w.]*: ")  # the last of such lines names the error


def read_failure(folder: Path) -> str | None:
    """The error that ended the run of a folder, its first line shortened if very long; None where none did.

    One that a run has survived, which came to its end with another model than the first, is of the past.
    """
    if not (folder / TRACEBACK).is_file():
        return None
    if (folder / "summary.json").is_file() and run_tables.has_new_model(folder / "metrics.csv"):
        return None
    try:
        text = read_regular(folder / TRACEBACK, _MOST_BYTES).decode(errors="replace")
    except ConfigError:
        return f"see its {TRACEBACK}"
    errors = [line for line in text.splitlines() if _ERROR.match(line)]
    name, _, words = errors[-1].partition(": ") if errors else ("", "", text.strip().rpartition("\n")[2])
    shown = words if name.rpartition(".")[2] in ("RunError", "ConfigError", "") else f"{name}: {words}"
    return "".join(sign if sign.isprintable() else "?" for sign in shown[:MAX_MESSAGE]) or None
