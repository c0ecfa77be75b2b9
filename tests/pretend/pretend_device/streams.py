"""Streams of the pretend device: all of them do their work at once, but note who waits for whom.

`Races` watches every operator. Two that touch the same memory on two streams, one of them writing, must be in order: by
`wait_stream`, or because the host waited in between. Otherwise a GPU may do them at the same time.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from pretend_device import _pretend

_here = threading.local()
HOST = "host"


class Stream:
    """One line of work; `seen` is how much of each stream's work is done before what it is asked for next."""

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = _pretend.current_device() if device is None else torch.device(device).index
        self.asked = 0
        self.seen: dict[Any, int] = dict(_host_saw)

    def wait_stream(self, stream: "Stream") -> None:
        """What this one is asked for next comes after what the other was asked for so far."""
        _learn(self.seen, {**stream.seen, stream: stream.asked})

    def wait_event(self, event: "Event") -> None:
        _learn(self.seen, event.seen)

    def synchronize(self) -> None:
        """The host has waited for it, and so has all that anybody is asked for from now on."""
        _pretend.note_wait()
        _host_learns({**self.seen, self: self.asked})


class Event:
    """A point in a stream's work; `enable_timing` gives its time by the host's clock."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.timed = enable_timing
        self.seen: dict[Any, int] = {}

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or current_stream()
        self.seen, self.time = {**stream.seen, stream: stream.asked}, time.perf_counter()

    def synchronize(self) -> None:
        _pretend.note_wait()
        _host_learns(self.seen)

    def elapsed_time(self, later: "Event") -> float:
        """Milliseconds; both must be timed, and the host must have waited for the later one."""
        if not (self.timed and later.timed):
            raise RuntimeError("both events must be created with enable_timing")
        if any(_host_saw.get(stream, 0) < done for stream, done in later.seen.items()):
            raise RuntimeError("the later event may not have come yet: synchronize it first")
        return (later.time - self.time) * 1000


_host_saw: dict[Any, int] = {}  # by stream: how much of its work the host knows to be done
_late: list[tuple[torch.Tensor, torch.Tensor, Stream, int]] = []  # copies to the host that it has not waited for


def _host_learns(more: dict[Any, int]) -> None:
    _learn(_host_saw, more)
    for copied in tuple(_late):
        here, value, stream, done = copied
        if _host_saw.get(stream, 0) >= done:
            here.copy_(value)
            _late.remove(copied)


def _learn(mine: dict[Any, int], more: dict[Any, int]) -> None:
    for stream, done in more.items():
        mine[stream] = max(mine.get(stream, 0), done)


_default = {index: Stream(torch.device("cpu", index)) for index in range(_pretend.device_count())}


def current_stream(device: Any = None) -> Stream:
    """The stream that operators of this thread go to."""
    index = _pretend.current_device() if device is None else torch.device(device).index or 0
    chosen = getattr(_here, "stream", None)
    return chosen if chosen is not None and chosen.device == index else _default[index]


@contextmanager
def stream(chosen: Stream) -> Iterator[None]:
    """Operators inside go to a stream."""
    before, device = getattr(_here, "stream", None), _pretend.current_device()
    _here.stream = chosen
    _pretend.set_device(chosen.device)
    try:
        yield
    finally:
        _here.stream = before
        _pretend.set_device(device)


def host_waits() -> None:
    """The host has waited for all work of the current device."""
    for each in (_default[_pretend.current_device()], current_stream()):
        _host_learns({**each.seen, each: each.asked})


class Races(TorchDispatchMode):
    """Raises where two streams touch the same memory out of order. It keeps all memory, so that no address returns.

    A copy to the host that nobody has waited for is NaN.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, Any] = {}
        self.wrote: dict[int, tuple[Stream, int]] = {}
        self.read: dict[int, dict[Stream, int]] = {}
        self.streams: set[Stream] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch imports its compiler, which takes seconds

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = op(*args, **kwargs)
        if op.is_view:
            return out
        stream = current_stream()
        _learn(stream.seen, _host_saw)
        stream.asked += 1
        self.streams.add(stream)
        given = dict(zip((each.name for each in op._schema.arguments), args, strict=False)) | kwargs
        changed = {
            each.name for each in op._schema.arguments if each.alias_info is not None and each.alias_info.is_write
        }
        read = self._places([value for name, value in given.items() if name not in changed])
        written = self._places([value for name, value in given.items() if name in changed])
        fresh = self._places(out) - read - written
        for place in read:
            self._after(op, stream, self.wrote.get(place))
            self.read.setdefault(place, {})[stream] = stream.asked
        for place in written | fresh:
            self._after(op, stream, self.wrote.get(place))
            for access in self.read.pop(place, {}).items():
                self._after(op, stream, access)
            self.wrote[place] = stream, stream.asked
        here = [each for each in tree_flatten(out)[0] if isinstance(each, torch.Tensor) and each.device.type == "cpu"]
        if here and read and kwargs.get("non_blocking"):
            _late.extend((each, each.clone(), stream, stream.asked) for each in here)
            for each in here:
                each.fill_(float("nan") if each.is_floating_point() else -1)  # what lies there until the copy is done
        elif here and (read or written):
            _host_learns({**stream.seen, stream: stream.asked})
        return out

    def _places(self, values: Any) -> set[int]:
        found = set()
        for each in tree_flatten(values)[0]:
            if isinstance(each, torch.Tensor) and each.device.type == "pretend":
                storage = each.untyped_storage()
                self.kept[storage._cdata] = storage
                found.add(storage.data_ptr())
        return found

    def _after(self, op: Any, stream: Stream, other: tuple[Stream, int] | None) -> None:
        if other is not None and other[0] is not stream and stream.seen.get(other[0], 0) < other[1]:
            raise RuntimeError(f"{op}: another stream may still be at the same memory")
