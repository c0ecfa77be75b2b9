"""Downloads a file under a temporary name, checks it, then renames it."""

import os
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path

from tqdm import tqdm

from fedexp.core.errors import ConfigError
from fedexp.core.files import publish, replacing
from fedexp.data.store import Known, digest

Accept = Callable[[Path], None]

TIMEOUT_S = 60
PIECE = 1 << 20


def fetch(urls: Sequence[str], target: Path, accept: Accept) -> None:
    """Downloads from the first mirror that delivers what `accept` lets pass.

    Raises:
        ConfigError: none did, or the folder cannot be written; nothing is left behind.
    """
    faults = []
    for url in urls:
        try:
            with replacing(target) as part:
                _receive(url, part)
                accept(part)
            return
        except (OSError, HTTPException, ConfigError) as error:
            faults.append(f"{url}: {error}")
    where = "" if _writable(target) else f" ({target.parent} cannot be written; set data_dir or FEDEXP_DATA)"
    raise ConfigError(f"could not download {target.name}{where}: {'; '.join(faults)}")


def has_md5(md5: str) -> Accept:
    """A check that accepts only a file with this MD5."""

    def accept(path: Path) -> None:
        found = digest(path)
        if found != md5:
            raise ConfigError(f"MD5 {found}, must be {md5}")

    return accept


def install(part: Path, known: Known, directory: Path) -> None:
    """Moves an unpacked file to its final path, if its checksum is the published one."""
    has_md5(known.md5)(part)
    target = directory / known.path
    target.parent.mkdir(parents=True, exist_ok=True)
    publish(part, target)


def _receive(url: str, part: Path) -> None:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer, part.open("xb") as file:
        promised = int(answer.headers.get("Content-Length") or 0)
        bar = tqdm(total=promised or None, unit="B", unit_scale=True, desc=url.rsplit("/", 1)[-1], disable=None)
        with bar:
            while piece := answer.read(PIECE):
                file.write(piece)
                bar.update(len(piece))
        received = file.tell()
    if promised and received != promised:  # http.client does not complain of a connection cut between two reads
        raise ConfigError(f"the connection ended after {received:,} of {promised:,} bytes")


def _writable(target: Path) -> bool:
    standing = next(folder for folder in target.parents if folder.exists())
    return os.access(standing, os.W_OK)
