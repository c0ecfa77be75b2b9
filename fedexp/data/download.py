"""Downloads a file under a temporary name, checks it, then renames it."""

import os
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from tqdm import tqdm

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import atomic_path

TIMEOUT_S = 60
CHUNK = 1 << 20


def fetch(url: str, target: Path, accept: Callable[[Path], None]) -> None:
    """Downloads a file that `accept` lets pass.

    Raises:
        ConfigError: it does not arrive or is another one, or the folder cannot be written; nothing is left behind.
    """
    try:
        with atomic_path(target) as part:
            _receive(url, part)
            accept(part)
    except (OSError, HTTPException, ConfigError) as error:
        where = "" if _is_writable(target) else f" ({target.parent} cannot be written; set data_dir or FEDEXP_DATA)"
        raise ConfigError(f"could not download {target.name}{where}: {url}: {error}") from None


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
