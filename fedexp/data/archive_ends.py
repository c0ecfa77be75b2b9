"""Checks that an archive is complete: no bytes before or behind it, no more content than it declares.

Readers skip what stands before or behind an archive, so a file could pass that is not the published one. How much is in
it is known before anything is unpacked. https://tukaani.org/xz/xz-file-format.txt (sections 2.1.2 and 4), and PKWARE's
APPNOTE.TXT (section 4.3.16).
"""

import lzma
import zipfile
import zlib
from pathlib import Path

MAX_BYTES = 2**30  # bytes that an archive may unpack to
_HEADER_BYTES = 12  # bytes of an xz stream's header, and of its footer


def demand_complete(path: Path) -> None:
    """Refuses a zip or xz archive with extra bytes around it or too much content; reads only its directory.

    Raises:
        zipfile.BadZipFile, lzma.LZMAError: the archive is damaged, or is not whole.
    """
    if zipfile.is_zipfile(path):
        _demand_complete_zip(path)
    elif path.suffix == ".xz":
        _demand_complete_xz(path)


def _demand_complete_zip(path: Path) -> None:
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        entries = archive.infolist()
        file.seek(-22 - len(archive.comment), 2)
        if file.read(4) != b"PK\5\6" or min((entry.header_offset for entry in entries), default=0):
            raise zipfile.BadZipFile("there are bytes before or behind it")
        if sum(entry.file_size for entry in entries) > MAX_BYTES:
            raise zipfile.BadZipFile(f"it holds more than {MAX_BYTES:,} bytes")


def _demand_complete_xz(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _HEADER_BYTES))
        footer = file.read()
        length = 4 * (int.from_bytes(footer[4:8], "little") + 1)
        if footer[10:] != b"YZ" or int.from_bytes(footer[:4], "little") != zlib.crc32(footer[4:10]):
            raise lzma.LZMAError("it does not end like an xz file")
        file.seek(max(0, size - _HEADER_BYTES - length))
        blocks = _blocks(file.read(min(length, size)))
    if 2 * _HEADER_BYTES + length + sum(-(-packed_bytes // 4) * 4 for packed_bytes, _ in blocks) != size:
        raise lzma.LZMAError("there are bytes before or behind it")
    if sum(unpacked_bytes for _, unpacked_bytes in blocks) > MAX_BYTES:
        raise lzma.LZMAError(f"it holds more than {MAX_BYTES:,} bytes")


def _blocks(index: bytes) -> list[tuple[int, int]]:
    """The size of each block in the file and unpacked, from the index of an xz stream."""
    numbers, number, shift = [], 0, 0
    for byte in index[1:-4]:  # a zero before and a checksum after them
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(number)
            number, shift = 0, 0
    count, *sizes = numbers or [0]
    if 2 * count > len(sizes):
        raise lzma.LZMAError("its index is cut off")
    return list(zip(sizes[: 2 * count : 2], sizes[1 : 2 * count : 2], strict=True))
