"""Whether a zip archive holds no more than its own bytes: a compressed one of 2 MB may unpack to 2 GB."""

import zipfile
from pathlib import Path


def is_stored(path: Path) -> bool:
    """Whether an archive is as large as all that is in it, as `torch.save` writes it; reads no entry.

    Raises:
        OSError, zipfile.BadZipFile: it cannot be read as an archive.
    """
    with zipfile.ZipFile(path) as archive:
        return sum(entry.file_size for entry in archive.infolist()) <= path.stat().st_size
