"""Reading named files out of a folder, a tar archive or a zip archive, whichever holds them."""

import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from lzma import LZMAError
from pathlib import Path

from fedexp.core.errors import ConfigError
from fedexp.data.archive_ends import demand_complete

DAMAGED = (zipfile.BadZipFile, tarfile.TarError, LZMAError, zlib.error, EOFError, OSError)


def present(source: Path, names: Collection[str]) -> set[str]:
    """Which of the names a source holds, without reading a file. A whole tar archive is trusted to hold them all."""
    if source.is_dir():
        return {name for name in names if (source / name).is_file()}
    if not source.is_file():  # a pipe would be waited for
        return set()
    try:
        demand_complete(source)
        if not zipfile.is_zipfile(source):
            return set(names) if ".tar" in source.suffixes else set()  # its content shows only when it is read
        with zipfile.ZipFile(source) as archive:
            return set(_match_entries(archive, names).values())
    except DAMAGED:
        return set()


def members(source: Path, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each of the named files, in the order of the source.

    Raises:
        ConfigError: the archive cannot be read, or lacks one of them.
    """
    missing = set(names)
    reader = _folder if source.is_dir() else _zip if zipfile.is_zipfile(source) else _tar
    try:
        if source.is_file():
            demand_complete(source)
        for name, raw in reader(source, names):
            missing.discard(name)
            yield name, raw
    except DAMAGED as error:
        raise ConfigError(f"{source} is damaged: {error or type(error).__name__}") from None
    if missing:
        raise ConfigError(f"{source} lacks {min(missing)} ({len(missing)} of {len(names)} files are missing)")


def _folder(source: Path, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
    for name in sorted(names):
        if (source / name).is_file():
            yield name, (source / name).read_bytes()


def _zip(source: Path, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(source) as archive:
        for entry, name in _match_entries(archive, names).items():
            yield name, archive.read(entry)


def _tar(source: Path, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(source, "r|*") as archive:
        for entry in archive:
            file = archive.extractfile(entry) if entry.name in names else None
            if file is not None:
                yield entry.name, file.read()


def _match_entries(archive: zipfile.ZipFile, names: Collection[str]) -> dict[str, str]:
    """Entry of the archive -> name; the archive may hold the files below one more folder."""
    name_of_entry: dict[str, str] = {}
    for entry in archive.namelist():
        parts = entry.split("/")
        for tail in ("/".join(parts[-2:]), "/".join(parts)):
            if tail in names and tail not in name_of_entry.values() and "__MACOSX" not in parts:
                name_of_entry[entry] = tail
    return name_of_entry
