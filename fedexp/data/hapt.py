"""The files of UCI HAPT: where they may lie, their checksums, and parsing them.

The raw recordings are compared with the SHA-256 of every file (`hapt.sha256`) whenever they are parsed, so the
cached arrays depend on that list alone. For the 561-feature tables no checksum is published; their cache depends
on the sizes and times of the files.
"""

import hashlib
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.data.archive_ends import demand_complete
from fedexp.data.members import DAMAGED, members, present
from fedexp.data.store import Arrays, load_or_make, stamp
from fedexp.data.windows import cut_all_segments

FORMAT = 1  # goes up when the meaning of the cached arrays changes
FOLDERS = ("HAPT", "HAPT Data Set")
ZIPS = (
    "smartphone+based+recognition+of+human+activities+and+postural+transitions.zip",
    "HAPT Data Set.zip",
)
TABLES = tuple(
    f"{split}/{kind}_{split.lower()}.txt" for split in ("Train", "Test") for kind in ("X", "y", "subject_id")
)
CURE = 'run "fedexp data download har", or set data_dir or FEDEXP_DATA to the folder that holds HAPT/'

Digests = dict[str, str]


def published_digests() -> Digests:
    """The SHA-256 of each file of the raw recordings, by its name."""
    lines = (Path(__file__).parent / "hapt.sha256").read_text().splitlines()
    return {name: sha256 for sha256, name in (line.split() for line in lines)}


def candidate_sources(directory: Path) -> Iterator[Path]:
    """Yields the paths where the files may be; the archive that a download puts there comes first."""
    folders = [directory / name for name in FOLDERS]
    yield from (parent / name for parent in (*folders, directory) for name in ZIPS)
    for folder in folders:
        yield folder
        yield folder / "RawData.tar.xz"


def find_source(directory: Path, names: list[str]) -> Path:
    """The first candidate source that holds all of the files.

    Raises:
        ConfigError: there is none; names the file that the best place lacks, and what to do.
    """
    best, most = directory / FOLDERS[0], set()
    for source in candidate_sources(directory):
        if names[0].startswith("RawData/") or source.suffix != ".xz":
            available = present(source, names)
            if len(available) == len(names):
                return source
            if len(available) > len(most):
                best, most = source, available
    first = next(name for name in names if name not in most)
    sha256 = published_digests().get(first)
    checksum = f" (SHA-256 {sha256})" if sha256 else ""
    alternatives = "no RawData.tar.xz or official zip" if sha256 else "no official zip"
    broken = "".join(f"; {path} {fault}" for path in candidate_sources(directory) if (fault := _fault(path)))
    raise ConfigError(f"no {first}{checksum} in {best}, and {alternatives} that holds it{broken}; {CURE}")


def _fault(path: Path) -> str:
    """What is wrong with an archive; nothing where it is whole or absent."""
    if path.suffix not in (".zip", ".xz") or not path.is_file():
        return ""
    if path.suffix == ".zip" and not zipfile.is_zipfile(path):
        return "is not a complete zip archive"
    try:
        demand_complete(path)
    except DAMAGED as error:
        return f"is not whole: {error}"
    return ""


def recordings(source: Path, digests: Digests) -> Iterator[tuple[str, bytes]]:
    """Name and content of every raw file, each compared with its checksum."""
    for name, raw in members(source, digests):
        checksum = hashlib.sha256(raw).hexdigest()
        if checksum != digests[name]:
            raise ConfigError(f"{name} in {source} is damaged: SHA-256 {checksum}, must be {digests[name]}; {CURE}")
        yield name, raw


def windows(source: Path, digests: Digests) -> Arrays:
    """All windows `x [W, 6, 128]`, `y [W]` and `subject [W]` of the raw recordings."""
    key = hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()[:16]
    return load_or_make(f"hapt-windows-{FORMAT}-{key}", lambda: _parse_windows(source, digests))


def _parse_windows(source: Path, digests: Digests) -> Arrays:
    labels = np.empty((0, 5), np.int64)
    halves: dict[str, np.ndarray] = {}
    for name, raw in recordings(source, digests):
        if name.endswith("labels.txt"):
            labels = numbers(raw, 5, name).astype(np.int64)
        else:
            halves[name] = numbers(raw, 3, name).astype(np.float32)
    signals = {}
    for name, acceleration in halves.items():
        if match := re.search(r"acc_exp(\d+)", name):
            rotation = halves[name.replace("acc_", "gyro_")]
            signals[int(match[1])] = np.concatenate([acceleration, rotation], axis=1)
    return cut_all_segments(signals, labels)


def numbers(raw: bytes, columns: int, name: str) -> np.ndarray:
    """The numbers of a text separated by blanks, `[rows, columns]`; several times faster than `np.loadtxt`."""
    with warnings.catch_warnings(action="error"):
        try:
            return np.fromstring(raw.decode("ascii"), sep=" ").reshape(-1, columns)
        except (DeprecationWarning, ValueError):
            raise ConfigError(f"{name} is damaged: not a table of numbers in {columns} columns; {CURE}") from None


def tables(source: Path, features: int) -> Arrays:
    """The feature tables: `x [W, features]`, `y [W]` and `subject [W]` of all W windows, the training people first."""
    files = [source / name for name in TABLES] if source.is_dir() else [source]
    key = hashlib.sha256(repr((list(stamp(*files)), features)).encode()).hexdigest()[:16]
    return load_or_make(f"hapt-features-{FORMAT}-{key}", lambda: _parse_tables(source, features))


def _parse_tables(source: Path, features: int) -> Arrays:
    raw = dict(members(source, TABLES))
    width = {"X": features, "y": 1, "subject_id": 1}
    parsed = {name: numbers(raw[name], width[_kind(name)], name) for name in TABLES}
    for split in ("Train", "Test"):
        rows = {name: len(table) for name, table in parsed.items() if name.startswith(split)}
        if len(set(rows.values())) > 1:
            counts = ", ".join(f"{name} {count:,}" for name, count in rows.items())
            raise ConfigError(f"the tables in {source} have different numbers of rows: {counts}; {CURE}")
    column = {kind: np.concatenate([parsed[name] for name in TABLES if _kind(name) == kind]) for kind in width}
    return {
        "x": column["X"].astype(np.float32),
        "y": column["y"][:, 0].astype(np.int64) - 1,
        "subject": column["subject_id"][:, 0].astype(np.int64),
    }


def _kind(name: str) -> str:
    return name.split("/")[1].rsplit("_", 1)[0]
