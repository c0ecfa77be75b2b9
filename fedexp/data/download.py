"""Downloads a file under a temporary name, checks it, then renames it."""

import os
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path

from tqdm import tqdm

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import atomic_path

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
