"""What is sent, read from the files of a run: the complete lines of metrics.csv, the summary's numbers, the files."""

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedexp.config import saved_config
from fedexp.core.errors import ConfigError
from fedexp.core.nested import flatten_keys
from fedexp.files import summary_json

FILES = ("summary.json", "metrics.csv", "federation.csv", "*.png", "config.json", ".hydra/*.yaml")


@dataclass(frozen=True)
class Line:
    """The numbers of one round."""

    round: int
    cells: Mapping[str, float]


def rounds_after(table: Path, last: int, position: int = 0) -> tuple[list[Line], int]:
    """The rounds beyond `last` that follow a position in the file, and the position after them.

    A line that is still being written is left for the next call.
    """
    if not table.exists():
        return [], position
    with table.open("rb") as file:
        header = file.readline()
        position = max(position, len(header))
        file.seek(position)
        new = file.read()
    complete = new[: new.rfind(b"\n") + 1]
    rows = csv.DictReader((header + complete).decode().splitlines()) if header.endswith(b"\n") else ()
    rounds = [Line(int(row["round"]), finite_numbers(row)) for row in rows if int(row["round"]) > last]
    return rounds, position + len(complete)


def finite_numbers(cells: Mapping[str, Any]) -> dict[str, float]:
    """The cells that are finite numbers; missing values, texts and booleans are left out."""
    finite = {}
    for name, cell in cells.items():
        try:
            value = math.nan if isinstance(cell, bool) or cell is None else float(cell)
        except (TypeError, ValueError):
            continue
        if math.isfinite(value):
            finite[name] = value
    return finite


def summary(folder: Path, last: int) -> Line | None:
    """The numbers of summary.json, for the last round; None if the run has not ended."""
    try:
        content = summary_json.read(folder)
    except (OSError, ConfigError):
        return None
    if content is None:
        return None
    return Line(last, {f"summary/{name}": value for name, value in finite_numbers(flatten_keys(content)).items()})


def files(folder: Path) -> list[Path]:
    """The files of a run that are sent, as far as they exist."""
    return sorted(path for pattern in FILES for path in folder.glob(pattern))


def choices(folder: Path) -> dict[str, str]:
    """The option of each group, as Hydra has recorded it; nothing for a run that Hydra did not start."""
    try:
        chosen = saved_config.read(folder).choices
    except (OSError, ConfigError):
        return {}
    return {name: option for name, option in chosen.items() if option is not None and not name.startswith("hydra/")}


def parameters(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config by dotted keys, without Hydra's, the tracker's and `_target_`."""
    sent = {name: node for name, node in config.items() if name not in ("hydra", "tracker")}
    return {name: value for name, value in flatten_keys(sent).items() if not name.endswith("_target_")}


def text(value: Any, longest: int) -> str:
    """A text unchanged, or any other value as JSON; cut to `longest` characters."""
    written = value if isinstance(value, str) else json.dumps(value, default=str)
    return written if len(written) <= longest else written[: longest - 3] + "..."


def sanitise_name(name: str) -> str:
    """Replaces what is no letter, digit or one of `_-. /` by `_`: RoA@0.8 becomes RoA_0.8."""
    return re.sub(r"[^\w\-. /]", "_", name, flags=re.ASCII)[:250]


def batches(lines: Sequence[Line], most: int) -> Iterator[list[Line]]:
    """Yields complete rounds in batches of at most `most` numbers, but of at least one round."""
    batch: list[Line] = []
    for line in lines:
        if batch and sum(len(entry.cells) for entry in batch) + len(line.cells) > most:
            yield batch
            batch = []
        batch.append(line)
    if batch:
        yield batch
