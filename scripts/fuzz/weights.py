"""Files of first weights, `model.weights`: of other shapes, types and names, damaged, foreign, pickles that act."""

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from scripts.fuzz.arrays import Acting
from scripts.fuzz.judged import CODES, Input
from scripts.fuzz.users_files import damaged, run_on, written

NAME = "shufflenet_v2_x0_5"  # one of the smallest
SHAPE, CLASSES = (3, 32, 32), 4
WORDS = (
    *("dataset=synthetic", "dataset.shape=[3,32,32]", f"dataset.classes={CLASSES}", "dataset.train_size=12"),
    *("dataset.test_size=6", "scenario.clients=2", "engine=loop", "model=torchvision", f"model.name={NAME}"),
)
INNER = ("conv1.0.weight", "conv1.1.weight", "conv1.1.running_var", "fc.weight", "fc.bias", "conv5.0.weight")
Entries = dict[str, Any]
VALUES: dict[str, Callable[[torch.Tensor], Any]] = {  # what stands in the place of an entry
    "NaN": lambda entry: entry * float("nan"),
    "one NaN": lambda entry: entry.flatten().index_fill(0, torch.tensor([0]), float("nan")).view_as(entry),
    "inf": lambda entry: entry + float("inf"),
    "1e38": lambda entry: entry * 0 + 1e38,
    "1e300": lambda entry: entry.double() * 0 + 1e300,
    "-1": lambda entry: entry * 0 - 1,
    "zeros": torch.zeros_like,
    "float16": torch.Tensor.half,
    "bfloat16": torch.Tensor.bfloat16,
    "float64": torch.Tensor.double,
    "int64": torch.Tensor.long,
    "int8": lambda entry: entry.to(torch.int8),
    "bool": lambda entry: entry > 0,
    "complex64": lambda entry: entry.to(torch.complex64),
    "float8": lambda entry: entry.to(torch.float8_e4m3fn),
    "sparse": torch.Tensor.to_sparse,
    "meta": lambda entry: entry.to("meta"),
    "expanded": lambda entry: torch.zeros(1).expand(entry.shape),
    "a huge shape": lambda _: torch.zeros(1).expand(10**12),
    "transposed": lambda entry: entry.transpose(0, -1),
    "flat": torch.Tensor.flatten,
    "a dimension more": lambda entry: entry[None],
    "a row less": lambda entry: entry[:-1].clone(),
    "a row more": lambda entry: torch.cat([entry, entry[:1]]),
    "empty": lambda entry: entry[:0].clone(),
    "a number": lambda entry: entry.flatten()[0],
    "None": lambda _: None,
    "a list": torch.Tensor.tolist,
    "a float": lambda _: 3.0,
    "a text": lambda _: "x",
    "an array": lambda entry: entry.numpy(),
    "a parameter": nn.Parameter,
    "gone": lambda _: KeyError,
    "a storage": torch.Tensor.untyped_storage,
    "that acts": lambda _: Acting(),
}
KEYS: dict[str, Callable[[Entries], Any]] = {  # the whole dict in another way
    "as it is": lambda entries: entries,
    "of an ordered dict": OrderedDict,
    "of nothing": lambda _: {},
    "of a prefix": lambda entries: {f"module.{name}": entry for name, entry in entries.items()},
    "within state_dict": lambda entries: {"state_dict": entries, "epoch": 3},
    "with more": lambda entries: {**entries, "more": torch.zeros(3)},
    "with a number": lambda entries: {**entries, "epoch": 3},
    "with a number as name": lambda entries: {**entries, 3: torch.zeros(3)},
    "with None as name": lambda entries: {**entries, None: torch.zeros(3)},
    "with counts": lambda entries: {**entries, "conv1.1.num_batches_tracked": torch.tensor(10**18)},
    "with the name of a bomb": lambda entries: {**entries, "x" * 100_000: torch.zeros(3)},
    "without the last layer": lambda entries: {name: each for name, each in entries.items() if "fc" not in name},
    "of the last layer alone": lambda entries: {name: each for name, each in entries.items() if "fc" in name},
    "of ten classes": lambda entries: {**entries, "fc.weight": torch.zeros(10, 1024), "fc.bias": torch.zeros(10)},
    "of ten classes without bias": lambda entries: {**entries, "fc.weight": torch.zeros(10, 1024)},
    "a list": lambda entries: list(entries.values()),
    "a tensor": lambda entries: entries["fc.weight"],
    "a text": lambda _: "weights",
    "None": lambda _: None,
    "a number": lambda _: 3,
    "that shares its storage": lambda entries: {name: torch.zeros(1).expand(e.shape) for name, e in entries.items()},
    "of a network": lambda _: nn.Linear(2, 2),
    "of arrays": lambda entries: {name: entry.numpy() for name, entry in entries.items()},
}
DAMAGED = 120


def weights() -> Iterator[Input]:
    """Every odd entry in several places, odd dicts, other files, and damaged ones."""
    for name in INNER:
        for what, change in VALUES.items():
            yield _saved(f"{name} {what}", lambda entries, name=name, change=change: _with(entries, name, change))
    for what, change in VALUES.items():
        yield _saved(f"all entries {what}", lambda entries, change=change: _all(entries, change))
    for what, change in KEYS.items():
        yield _saved(f"a dict {what}", change)
        yield _saved(f"a dict {what}, normed by groups", change, ("model.norm=group",))
        yield _saved(f"a dict {what}, kept by clients", change, ("model.buffers=local",))
    for what, content in FILES.items():
        yield _weights(what, content)
        yield _weights(f"{what}, as .npz", content, "npz")
    for number in range(DAMAGED):
        yield _weights(f"damage {number}", lambda number=number: _damaged(number))


def _with(entries: Entries, name: str, change: Callable[[torch.Tensor], Any]) -> Entries:
    return {key: each for key, each in (entries | {name: change(entries[name])}).items() if each is not KeyError}


def _all(entries: Entries, change: Callable[[torch.Tensor], Any]) -> Entries:
    changed = {name: change(entry) if entry.is_floating_point() else entry for name, entry in entries.items()}
    return {name: entry for name, entry in changed.items() if entry is not KeyError}


@cache
def _entries() -> Entries:
    from torchvision import models

    rng = torch.Generator().manual_seed(0)
    entries = models.get_model(NAME, num_classes=CLASSES).state_dict()
    return {name: torch.rand(entry.shape, generator=rng) / 9 for name, entry in entries.items() if entry.ndim}


def _bytes(content: Any, **settings: Any) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, **settings)
    return file.getvalue()


@cache
def _whole() -> bytes:
    return _bytes(_entries())


def _damaged(number: int) -> bytes:
    """A few bytes of the whole file, and in every other one of its pickle alone."""
    if number % 2:
        return damaged(_whole(), number)
    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_whole())) as whole, zipfile.ZipFile(found, "w") as archive:
        for name in whole.namelist():
            raw = whole.read(name)
            archive.writestr(name, damaged(raw, number) if name.endswith(".pkl") else raw)
    return found.getvalue()


def _bomb() -> bytes:
    """An archive whose pickle asks for a tensor of 1 GB of zeros that take 1 MB."""
    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_whole())) as whole, zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in whole.namelist():
            archive.writestr(name, bytes(2**30) if name.endswith("data/0") else whole.read(name))
    return found.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "a text": lambda: b"weights\n",
    "noise": lambda: np.random.default_rng(0).bytes(5000),
    "NUL": lambda: bytes(5000),
    "the old format": lambda: _bytes(_entries(), _use_new_zipfile_serialization=False),
    "a pickle that acts": lambda: pickle.dumps(Acting()),
    "a saved pickle that acts": lambda: _bytes(Acting()),
    "a saved pickle that acts in the old format": lambda: _bytes(Acting(), _use_new_zipfile_serialization=False),
    "a dict of pickles that act": lambda: _bytes({"fc.weight": Acting()}),
    "a pickle of a dict": lambda: pickle.dumps({"fc.weight": np.zeros(3)}),
    "arrays": lambda: _npz(),
    "an empty archive": lambda: b"PK\x05\x06" + bytes(18),
    "a pickle that nests": lambda: b"\x80\x02" + b"(" * 100_000 + b".",
    "zeros that are 1 GB": _bomb,
}


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, **{name: entry.numpy() for name, entry in _entries().items()})
    return file.getvalue()


def _saved(what: str, change: Callable[[Entries], Any], words: tuple[str, ...] = ()) -> Input:
    return _weights(what, lambda: _bytes(change(_entries())), words=words)


def _weights(what: str, content: Callable[[], bytes], kind: str = "pt", words: tuple[str, ...] = ()) -> Input:
    prepare = written(f"weights.{kind}", content)
    return run_on(prepare, what, *WORDS, f"model.weights=mine/weights.{kind}", *words, codes=CODES)
