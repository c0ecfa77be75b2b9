"""A pretend accelerator: after `import pretend_device` there are two devices `torch.device("pretend")`.

`fedexp` asks for "cuda" by name. `substitute()` makes every module of fedexp that is imported afterwards read "pretend"
where its source says "cuda", `pretend_device.` where it says `torch.cuda.`, and "gloo" for "nccl": nothing else about
it changes. See README.md for what the device is strict about.
"""

import importlib.abc
import importlib.machinery
import re
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist

from pretend_device.build import build

build()
_pretend: Any = import_module("pretend_device._pretend")
from pretend_device.graphs import CUDAGraph, graph  # noqa: E402, F401
from pretend_device.streams import (  # noqa: E402, F401
    Event,
    Races,
    Stream,
    current_stream,
    host_waits,
    stream,
)

torch.utils.rename_privateuse1_backend("pretend")

counts, reset_counts = _pretend.counts, _pretend.reset_counts
device_count, current_device = _pretend.device_count, _pretend.current_device


def set_device(device: Any) -> None:
    """Makes a device the current one; a number, or a torch.device."""
    _pretend.set_device(device if isinstance(device, int) else torch.device(device).index or 0)


default_generators = tuple(_pretend.default_generator(index) for index in range(device_count()))


def get_rng_state(device: Any = "pretend") -> torch.Tensor:
    """The state of a device's default generator."""
    return default_generators[torch.device(device).index or 0].get_state()


def set_rng_state(state: torch.Tensor, device: Any = "pretend") -> None:
    """Puts it back."""
    default_generators[torch.device(device).index or 0].set_state(state)


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return False


def manual_seed_all(seed: int) -> None:
    """Seeds nothing: fedexp draws from generators of its own."""


def get_device_name(_: Any = None) -> str:
    return "pretend accelerator"


def get_device_properties(_: Any = None) -> SimpleNamespace:
    """What the runs ask of it: the memory, of which half is as much as on a CPU."""
    return SimpleNamespace(total_memory=4096 * 10**6)


def empty_cache() -> None:
    """There is none."""


def max_memory_allocated(_: Any = None) -> int:
    return _pretend.peak_bytes()


def memory_allocated(_: Any = None) -> int:
    return _pretend.held_bytes()


def synchronize(_: Any = None) -> None:
    """Waits for the device; not allowed while a graph is captured, as on a GPU."""
    if _pretend.is_capturing():
        raise RuntimeError("synchronize: operation not permitted when stream is capturing")
    _pretend.note_wait()
    host_waits()


def graph_pool_handle() -> tuple[int, int]:
    """Nothing is shared here."""
    return (0, 1)


torch._register_device_module("pretend", sys.modules[__name__])


def for_pretend(source: str) -> str:
    """Source of fedexp that takes the pretend device for a GPU."""
    source = source.replace("torch.cuda.", "__import__('pretend_device').").replace('"cuda"', '"pretend"')
    return re.sub(r"(\w+)\.is_cuda", r"(\1.device.type == 'pretend')", source.replace('"nccl"', '"gloo"'))


class _Substituted(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str):
        return self.source_to_code(self.get_data(self.path), self.path)  # never the cached bytecode

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        return super().source_to_code(for_pretend(data.decode()).encode(), path, _optimize=_optimize)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None):
        if fullname.split(".")[0] != "fedexp":
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is not None and found.origin and found.origin.endswith(".py"):
            found.loader = _Substituted(fullname, found.origin)
        return found


class _Sum:
    """A sum over processes that is under way."""

    def __init__(self, there: torch.Tensor, here: torch.Tensor, pending: Any) -> None:
        self.there, self.here, self.pending = there, here, pending

    def is_completed(self) -> bool:
        return self.pending.is_completed()

    def wait(self, *limit: Any) -> None:
        self.pending.wait(*limit)
        self.there.copy_(self.here)


_all_reduce, _broadcast_object_list = dist.all_reduce, dist.broadcast_object_list


def _summed(tensor: torch.Tensor, *, async_op: bool) -> Any:
    """`all_reduce` for the pretend device: gloo knows host memory only."""
    if tensor.device.type != "pretend":
        return _all_reduce(tensor, async_op=async_op)
    here = tensor.cpu()
    return _Sum(tensor, here, _all_reduce(here, async_op=async_op))


def _told(holder: list[Any], src: int, **_: Any) -> None:
    _broadcast_object_list(holder, src=src)


def substitute() -> None:
    """From here on fedexp takes the pretend device for a GPU."""
    assert not any(name.split(".")[0] == "fedexp" for name in sys.modules), "import fedexp after substitute()"
    sys.meta_path.insert(0, _Finder())
    dist.all_reduce, dist.broadcast_object_list = _summed, _told
