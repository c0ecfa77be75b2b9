"""Downloads a file under a temporary name, checks it, then renames it."""

import os
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path

from tqdm import tqdm

from fedexp.core.errors import ConfigError
from fedexp.data.store import PublishedFile, digest
from fedexp.files.atomic import atomic_path, publish

Accept = Callable[[Path], None]

TIMEOUT_S = 60
CHUNK = 1 << 20


def fetch(urls: Sequence[str], target: Path, accept: Accept) -> None:
    """Downloads from the first mirror that delivers what `accept` lets pass.

    Raises:
        ConfigError: none did, or the folder cannot be written; nothing is left behind.
    """
    faults = []
    for url in urls:
        try:
            with atomic_path(target) as part:
                _receive(url, part)
                accept(part)
            return
        except (OSError, HTTPException, ConfigError) as error:
            faults.append(f"{url}: {error}")
    where = "" if _is_writable(target) else f" ({target.parent} cannot be written; set data_dir or FEDEXP_DATA)"
    raise ConfigError(f"could not download {target.name}{where}: {'; '.join(faults)}")


def md5_check(md5: str) -> Accept:
    """A check that accepts only a file with this MD5."""

    def accept(path: Path) -> None:
        checksum = digest(path)
        if checksum != md5:
            raise ConfigError(f"MD5 {checksum}, must be {md5}")

    return accept


def install_file(part: Path, published_file: PublishedFile, directory: Path) -> None:
    """Moves an unpacked file to its final path, if its checksum is the published one."""
    md5_check(published_file.md5)(part)
    target = directory / published_file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    publish(part, target)


def _receive(url: str, part: Path) -> None:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response, part.open("xb") as file:
        expected_bytes = int(response.headers.get("Content-Length") or 0)
        bar = tqdm(total=expected_bytes or None, unit="B", unit_scale=True, desc=url.rsplit("/", 1)[-1], disable=None)
        with bar:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
        received = file.tell()
    if (
        expected_bytes and received != expected_bytes
    ):  # http.client does not complain of a connection cut between two reads
        raise ConfigError(f"the connection ended after {received:,} of {expected_bytes:,} bytes")


def _is_writable(target: Path) -> bool:
    existing = next(folder for folder in target.parents if folder.exists())
    return os.access(existing, os.W_OK)
