"""Arrays of users in .npy and .npz files: of every type and shape, with odd headers, damaged, and pickles that act."""

import io
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from scripts.fuzz.judged import Input
from scripts.fuzz.users_files import damaged, run_on, written

ROWS = 24


class Acting:
    """Leaves a file where it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        return open, ("executed", "w")


def npy(array: np.ndarray) -> bytes:
    """A .npy file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def _headed(header: str, content: bytes = bytes(8 * ROWS), version: int = 1) -> bytes:
    """A .npy file with a header of one's own."""
    size = struct.pack("<H" if version == 1 else "<I", len(header) + 1)
    return b"\x93NUMPY" + bytes((version, 0)) + size + header.encode() + b"\n" + content


def _header(descr: str = "<i8", order: str = "False", shape: str = f"({ROWS},)") -> str:
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"


NUMBERS = np.arange(ROWS) % 3
TYPES = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", ">i8", "float16", "float32", "float64", ">f4")
OTHERS = ("longdouble", "complex64", "bool", "S3", "U3", "object", "M8[s]", "m8[s]", "V4", "i4,f4")
SHAPES = ((ROWS, 1), (1, ROWS), (0,), (), (ROWS, 0), (2, 12), (ROWS - 1,), (ROWS + 1,), (2, 3, 4), (1,) * 30)
HEADERS = {
    "a shape below 0": _header(shape="(-24,)"),
    "a huge shape": _header(shape="(1000000000000,)"),
    "a shape beyond int64": _header(shape="(10**30,)"),
    "a long shape": _header(shape="(100000000000000000000000000,)"),
    "a shape of fractions": _header(shape="(2.5,)"),
    "no tuple": _header(shape="24"),
    "a list": _header(shape="[24]"),
    "a bool": _header(shape="(True,)"),
    "a strange type": _header("<q9"),
    "objects": _header("|O"),
    "a call": "{'descr': __import__('os').system('touch executed'), 'fortran_order': False, 'shape': (24,)}",
    "a deep nest": "(" * 3000,
    "no header": "",
    "a long header": _header() + " " * 60_000,
    "columns first": _header(order="True"),
    "order 3": _header(order="3"),
    "another key": _header()[:-1] + "'more': 1}",
    "a key less": "{'descr': '<i8', 'shape': (24,)}",
}
ARRAYS: dict[str, Callable[[], bytes]] = {  # each a .npy file
    **{f"of {kind}": (lambda kind=kind: npy(NUMBERS.astype(kind))) for kind in (*TYPES, *OTHERS)},
    **{f"of shape {shape}": (lambda shape=shape: npy(np.resize(NUMBERS, shape))) for shape in SHAPES},
    **{f"headed by {what}": (lambda header=header: _headed(header)) for what, header in HEADERS.items()},
    **{f"of version {version}": (lambda v=version: _headed(_header(), version=v)) for version in (1, 2, 3, 4, 255)},
    "shorter than it says": lambda: npy(NUMBERS)[:-9],
    "longer than it says": lambda: npy(NUMBERS) + bytes(9),
    "empty": lambda: b"",
    "its first bytes": lambda: npy(NUMBERS)[:7],
    "NaN": lambda: npy(np.where(NUMBERS == 2, np.nan, NUMBERS)),
    "NaN alone": lambda: npy(np.full(ROWS, np.nan)),
    "inf": lambda: npy(np.where(NUMBERS == 2, np.inf, NUMBERS)),
    "fractions": lambda: npy(NUMBERS + 0.5),
    "-1": lambda: npy(NUMBERS - 1),
    "-2": lambda: npy(NUMBERS - 2),
    "huge": lambda: npy(NUMBERS + 2**62),
    "huge unsigned": lambda: npy(NUMBERS.astype(np.uint64) + np.uint64(2**63)),
    "1e300": lambda: npy(NUMBERS * 1e300),
    "a pickle that acts": lambda: pickle.dumps(Acting()),
    "objects that act": lambda: npy(np.array([Acting()] * ROWS, dtype=object)),
    "a .npz archive": lambda: npz({"a": npy(NUMBERS)}),
    "a text": lambda: b"0\n1\n" * 12,
}
IMAGES = ((), (0,), (1,), (4, 4), (4, 4, 1), (1, 4, 4), (3, 4, 4), (4, 4, 3), (2, 2, 2, 2), (100_000,))
LAYOUTS = ("null", "channels_first", "channels_last")
USUAL = {
    "x_train": lambda: npy(np.random.default_rng(0).random((ROWS, 4), np.float32)),
    "y_train": lambda: npy(NUMBERS),
    "x_test": lambda: npy(np.random.default_rng(1).random((ROWS, 4), np.float32)),
    "y_test": lambda: npy(NUMBERS),
    "subject": lambda: npy(NUMBERS),
}


def npz(files: dict[str, bytes], ending: str = ".npy", kind: int = zipfile.ZIP_STORED) -> bytes:
    """A .npz archive of .npy files."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(f"{name}{ending}", content)
    return found.getvalue()


def arrays() -> Iterator[Input]:
    """`dataset=npz` with every odd array in the place of each of its own, shapes of examples, archives, damages."""
    for name, (what, content) in product(USUAL, ARRAYS.items()):
        words = ("federation=subject",) if name == "subject" else ()
        yield _npz(f"{name} {what}", lambda name=name, content=content: _whole(**{name: content()}), words)
    for shape, kind, layout in product(IMAGES, ("float32", "uint8", "bool", "float64"), LAYOUTS):
        yield _shaped(shape, kind, layout)
    for kind in (*TYPES, *OTHERS):
        yield _shaped((5,), kind, "null")
    for what, content in ARCHIVES.items():
        yield _npz(f"an archive {what}", content)
    for number in range(120):
        yield _npz(f"damage {number}", lambda number=number: damaged(_whole(), number))


def _shaped(shape: tuple[int, ...], kind: str, layout: str) -> Input:
    def content() -> bytes:
        train, test = (npy((np.indices((rows, *shape)).sum(axis=0) % 2).astype(kind)) for rows in (ROWS, ROWS))
        return _whole(x_train=train, x_test=test)

    return _npz(f"examples {kind} {shape} {layout}", content, (f"dataset.layout={layout}", "dataset.normalise=train"))


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "of nothing": lambda: npz({}),
    "that is empty": lambda: b"",
    "of other names": lambda: npz({"a": npy(NUMBERS)}),
    "without endings": lambda: npz(_files(), ""),
    "compressed": lambda: npz(_files(), kind=zipfile.ZIP_DEFLATED),
    "compressed by bzip2": lambda: npz(_files(), kind=zipfile.ZIP_BZIP2),
    "compressed by LZMA": lambda: npz(_files(), kind=zipfile.ZIP_LZMA),
    "in a folder": lambda: npz({f"a/{name}": content for name, content in _files().items()}),
    "with a way out": lambda: npz(_files() | {"../executed": npy(NUMBERS)}),
    "with more": lambda: npz(_files() | {"more": pickle.dumps(Acting())}),
    "behind noise": lambda: b"noise" * 100 + _whole(),
    "before noise": lambda: _whole() + b"noise" * 100,
    "with 200 MB behind an array": lambda: npz(_files() | {"x_train": _zeros()}, kind=zipfile.ZIP_DEFLATED),
    "that is a .npy file": lambda: npy(NUMBERS),
    "that is a pickle": lambda: pickle.dumps({"x_train": Acting()}),
}


def _zeros() -> bytes:
    return _headed(_header("<f4", shape="(24, 4)"), bytes(200_000_000))


def _files() -> dict[str, bytes]:
    return {name: content() for name, content in USUAL.items()}


def _whole(**changed: bytes) -> bytes:
    return npz(_files() | changed)


def _npz(what: str, content: Callable[[], bytes], words: tuple[str, ...] = ()) -> Input:
    usual = ("dataset=npz", "dataset.path=mine/arrays.npz", "model=logistic", "scenario.clients=3")
    return run_on(written("arrays.npz", content), what, *usual, *words)
