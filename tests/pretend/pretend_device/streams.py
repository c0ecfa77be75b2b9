"""Streams of the pretend device: all of them do their work at once, but note who waits for whom.

`Races` watches every operator. Two that touch the same memory on two streams, one of them writing, must be in order: by
`wait_stream`, or because the host waited in between. Otherwise a GPU may do them at the same time. Memory belongs to
the stream that it was allocated on: what is freed may be used by that stream's next work.
"""

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pretend_device import _pretend
from pretend_device.flat import leaves

_here = threading.local()
HOST = "host"


class Stream:
    """One line of work; `seen` is how much of each stream's work is done before what it is asked for next."""

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = _pretend.current_device() if device is None else torch.device(device).index
        self.asked = 0
        self.seen: dict[Any, int] = dict(_host_saw)
        self.waits = 0  # of the host for it

    def wait_stream(self, stream: "Stream") -> None:
        """What this one is asked for next comes after what the other was asked for so far."""
        _learn(self.seen, {**stream.seen, stream: stream.asked})

    def wait_event(self, event: "Event") -> None:
        _learn(self.seen, event.seen)

    def synchronize(self) -> None:
        """The host has waited for it, and so has all that anybody is asked for from now on."""
        _count_wait(self)
        _host_learns({**self.seen, self: self.asked})


class Event:
    """A point in a stream's work; `enable_timing` gives its time by the host's clock."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.timed = enable_timing
        self.seen: dict[Any, int] = {}
        self.stream, self.waits = current_stream(), -1

    def record(self, stream: Stream | None = None) -> None:
        self.stream = stream or current_stream()
        _assign_waits()
        self.seen, self.time = {**self.stream.seen, self.stream: self.stream.asked}, time.perf_counter()
        self.waits = self.stream.waits

    def synchronize(self) -> None:
        """Counts as a wait only if the host has not waited for the stream since the event was recorded."""
        _assign_waits()
        if self.waits == self.stream.waits:
            _count_wait(self.stream)
        _host_learns(self.seen)

    def elapsed_time(self, later: "Event") -> float:
        """Milliseconds; both must be timed, and the host must have waited for the later one."""
        if not (self.timed and later.timed):
            raise RuntimeError("both events must be created with enable_timing")
        if any(_host_saw.get(stream, 0) < done for stream, done in later.seen.items()):
            raise RuntimeError("the later event may not have come yet: synchronize it first")
        return (later.time - self.time) * 1000


_assigned_waits = 0


def _assign_waits() -> None:
    """The waits that the device counted since the last call were for the current stream."""
    global _assigned_waits
    counted = _pretend.counts().get("sync", 0)
    current_stream().waits += max(0, counted - _assigned_waits)  # the counts may have been reset
    _assigned_waits = counted


def _count_wait(stream: Stream) -> None:
    global _assigned_waits
    _assign_waits()
    _pretend.note_wait()
    _assigned_waits += 1
    stream.waits += 1


_host_saw: dict[Any, int] = {}  # by stream: how much of its work the host knows to be done
_copies: list[tuple[Callable[[], Any], Stream, int]] = []  # that the host has not waited for, and what ends each


def _host_learns(more: dict[Any, int]) -> None:
    _learn(_host_saw, more)
    done = [end for end, stream, position in _copies if _host_saw.get(stream, 0) >= position]
    _copies[:] = [copy for copy in _copies if _host_saw.get(copy[1], 0) < copy[2]]
    for end in done:
        end()


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
    _assign_waits()
    _here.stream = chosen
    _pretend.set_device(chosen.device)
    try:
        yield
    finally:
        _assign_waits()
        _here.stream = before
        _pretend.set_device(device)


def host_waits() -> None:
    """The host has waited for all work of the current device."""
    for each in (_default[_pretend.current_device()], current_stream()):
        _host_learns({**each.seen, each: each.asked})


Bytes = tuple[int, int, int]  # of a tensor: its storage, the first byte there, and the one behind the last


class _Memory:
    """Who was at a storage: by first byte, end and stream, how much that stream was asked for by then."""

    def __init__(self, owner: Stream | None) -> None:
        """The `owner` allocated it, unless nobody saw that."""
        self.owner = owner
        self.reads: dict[tuple[int, int, Stream], int] = {}
        self.writes: dict[tuple[int, int, Stream], int] = {}

    def others(self, part: Bytes, stream: Stream, writes: bool) -> Iterator[tuple[Stream, int]]:
        """The accesses of other streams that an access must come after."""
        for (begin, end, other), position in [*self.writes.items(), *(self.reads.items() if writes else ())]:
            if other is not stream and begin < part[2] and part[1] < end:
                yield other, position

    def note(self, part: Bytes, stream: Stream, writes: bool) -> None:
        """A write comes after all that was at the same bytes: whoever comes after it, comes after that, too."""
        if writes:
            for accesses in (self.reads, self.writes):
                for begin, end, other in tuple(accesses):
                    if part[1] <= begin and end <= part[2]:
                        del accesses[begin, end, other]
        (self.writes if writes else self.reads)[part[1], part[2], stream] = stream.asked


class Races(TorchDispatchMode):
    """Raises where two streams touch the same bytes out of order, or one frees memory that another still uses.

    A copy to the host that nobody has waited for is NaN; what is copied from it must stay as it is until then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[int, _Memory] = {}
        self.freed_early = False
        self.streams: set[Stream] = set()

    def __exit__(self, kind: Any, *rest: Any) -> None:
        super().__exit__(kind, *rest)
        if kind is not None:
            _copies.clear()
            return
        _host_learns({each: each.asked for each in self.streams})
        self._check_freed()

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
        sources = [value for name, value in given.items() if name not in changed]
        read = self._parts(sources)
        written = self._parts([value for name, value in given.items() if name in changed])
        old = {storage for storage, *_ in read | written}
        written |= {part for part in self._parts(out, stream) if part[0] not in old}
        for parts, writes in ((read, False), (written, True)):
            for part in parts:
                self._touch(op, stream, part, writes)
        self._check_freed()
        here = _on_host(out)
        if given.get("non_blocking") and (read or written):
            _copies.extend((partial(each.copy_, each.clone()), stream, stream.asked) for each in here)
            for each in here:
                each.fill_(float("nan") if each.is_floating_point() else -1)  # what lies there until the copy is done
            _copies.extend(
                (partial(_check_kept, each, each.clone()), stream, stream.asked) for each in _on_host(sources)
            )
        elif here and (read or written):
            _host_learns({**stream.seen, stream: stream.asked})
        return out

    def _parts(self, values: Any, stream: Stream | None = None) -> set[Bytes]:
        """The bytes of all tensors on the device; what was not there before was allocated on the stream."""
        found = set()
        for each in leaves(values):
            if isinstance(each, torch.Tensor) and each.device.type == "pretend" and each.numel():
                storage, size = each.untyped_storage(), each.element_size()
                last = sum((length - 1) * step for length, step in zip(each.shape, each.stride(), strict=True))
                begin = each.storage_offset() * size
                found.add((storage._cdata, begin, begin + (last + 1) * size))
                if storage._cdata not in self.memory:
                    self.memory[storage._cdata] = _Memory(stream)
                    weakref.finalize(storage, self._free, storage._cdata).atexit = False
        return found

    def _touch(self, op: Any, stream: Stream, part: Bytes, writes: bool) -> None:
        memory = self.memory[part[0]]
        if any(stream.seen.get(other, 0) < position for other, position in memory.others(part, stream, writes)):
            raise RuntimeError(f"{op}: another stream may still be at the same memory")
        memory.note(part, stream, writes)

    def _free(self, storage: int) -> None:
        """Notes whether the stream that gets the memory back comes after all that others do there."""
        memory = self.memory.pop(storage)
        if (owner := memory.owner) is not None:
            for (_, _, other), position in [*memory.reads.items(), *memory.writes.items()]:
                known = position if other is owner else max(owner.seen.get(other, 0), _host_saw.get(other, 0))
                self.freed_early |= known < position

    def _check_freed(self) -> None:
        if self.freed_early:
            raise RuntimeError("memory was freed while another stream may still be at it")


def _on_host(values: Any) -> list[torch.Tensor]:
    return [each for each in leaves(values) if isinstance(each, torch.Tensor) and each.device.type == "cpu"]


def _check_kept(source: torch.Tensor, value: torch.Tensor) -> None:
    if not torch.equal(source, value):
        raise RuntimeError("host memory was written to before it was copied to the device")
