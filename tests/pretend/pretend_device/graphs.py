"""What fedexp takes of torch.cuda, for the pretend device: graphs that really replay.

A graph notes every operator that runs while it is captured, with the tensors it read, and replays them into the same
memory: Python is not run again, numbers taken from the host are baked in, as on a GPU. What CUDA forbids while it
captures (item(), host copies, nonzero, an unregistered generator) raises.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from pretend_device import _pretend
from pretend_device.flat import leaves


class CUDAGraph:
    """Operators to be run again."""

    def __init__(self) -> None:
        self.device = _pretend.current_device()  # as on a GPU: the current one, wherever the tensors are
        self.steps: list[tuple[Any, tuple, dict, list]] = []
        self.generators: list[torch.Generator] = []

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Allows a generator other than the default one."""
        self.generators.append(generator)

    def replay(self) -> None:
        """Runs the operators again, with the results in the same places."""
        with torch.no_grad():
            for op, args, kwargs, before in self.steps:
                now = leaves(op(*args, **kwargs))
                for old, new in zip(before, now, strict=True):
                    if isinstance(old, torch.Tensor) and old is not new and old.data_ptr() != new.data_ptr():
                        old.copy_(new)


class _Recorder(TorchDispatchMode):
    def __init__(self, graph: CUDAGraph) -> None:
        super().__init__()
        self.graph = graph

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch imports its compiler, which takes seconds

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        flat = leaves((args, kwargs))
        places = {each.device for each in flat if isinstance(each, torch.Tensor)}
        for each in flat:
            if isinstance(each, torch.Generator) and not any(_same(each, known) for known in self.graph.generators):
                raise RuntimeError("a generator that is not registered with the graph is used while it is captured")
        out = op(*args, **kwargs)
        places |= {each.device for each in leaves(out) if isinstance(each, torch.Tensor)}
        here = torch.device("pretend", self.graph.device)
        if any(place.type == "pretend" and place != here for place in places):
            _pretend_note_other_device()
            return out  # it runs at once and is no part of the graph: CUDA captures the current device's stream alone
        if any(place == here for place in places):
            held = tree_map(lambda each: each.detach() if isinstance(each, torch.Tensor) else each, args)
            self.graph.steps.append((op, held, kwargs, leaves(out)))
        return out


other_device = 0


def _pretend_note_other_device() -> None:
    global other_device
    other_device += 1


@contextmanager
def graph(captured: CUDAGraph, pool: object = None) -> Iterator[None]:  # noqa: ARG001
    """Captures what runs inside; graphs with the same `pool` share memory on a GPU, here each has its own."""
    _pretend.capture(True)
    try:
        with _Recorder(captured):
            yield
    finally:
        _pretend.capture(False)


def _same(one: torch.Generator, other: torch.Generator) -> bool:
    """Whether both are handles of one generator: PyTorch makes a new handle for every call."""
    return one is other or _pretend.generator_id(one) == _pretend.generator_id(other)
