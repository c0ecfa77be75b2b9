"""The engine as a part: which trainer, on which device, with how many workers."""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from torch import nn

from fedexp.core.cpu_cores import usable_cores
from fedexp.core.errors import ConfigError
from fedexp.core.files import write_atomically
from fedexp.core.part import Part, Positive, Range
from fedexp.core.values import Layout, Plan
from fedexp.data.store import cache_dir
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.privacy.contract import Privacy
from fedexp.training.batches import Batches, draw_batches
from fedexp.training.examples import Examples
from fedexp.training.loop import Loop, Task, Trainer
from fedexp.training.stacked import Stacked

Network = Callable[[], nn.Module]


@dataclass(frozen=True, kw_only=True)
class Engine(Part):
    """How the clients of a round are executed; the choice never changes the result beyond rounding."""

    workers: Annotated[int, Range(1)] | Literal["auto"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    memory_mb: Annotated[float, Positive] = 2048.0
    evaluation_chunk: Annotated[int, Range(1)] | Literal["auto"] = "auto"

    def refuse(self) -> None:
        """Raises ConfigError where this machine cannot do what is asked."""
        if self.device == "cuda" and not torch.cuda.is_available():
            raise ConfigError("engine.device=cuda needs a CUDA device, but PyTorch sees none; use engine.device=auto")
        if self.workers not in ("auto", 1) and not hasattr(os, "fork"):
            raise ConfigError(
                f"engine.workers must be 1 or auto where processes cannot fork, got {self.workers}; start the run with "
                "torchrun --no-python --nproc-per-node WORKERS fedexp run ..."
            )
        if self.place().type == "cuda" and self.workers not in ("auto", 1):
            raise ConfigError(
                f"engine.workers must be 1 or auto on a GPU, got {self.workers}; for several GPUs start the run with "
                "torchrun --no-python --nproc-per-node GPUS fedexp run ..."
            )

    def place(self) -> torch.device:
        """The device of the run: the first GPU if there is one (torchrun gives each process its own)."""
        if self.device == "cpu" or (self.device == "auto" and not torch.cuda.is_available()):
            return torch.device("cpu")
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))

    def crew_size(self, participants: int) -> int:
        """Number of processes: as asked, or one a usable core, no more than can be busy."""
        if self.workers != "auto":
            return self.workers
        if self.place().type == "cuda" or not hasattr(os, "fork"):
            return 1
        return max(1, min(usable_cores(), participants))

    def chunk(self, floats: int) -> int:
        """Examples in one evaluation batch, given the floats that one example costs."""
        if self.evaluation_chunk != "auto":
            return self.evaluation_chunk
        budget = 2**30 if self.place().type == "cuda" else 2**23
        return int(np.clip(budget // floats, 50, 10_000))

    def choose(
        self, network: Network, layout: Layout, examples: Examples, rule: LocalRule, privacy: Privacy, rows: int
    ) -> "Choice":
        """The trainer's name and why."""
        raise NotImplementedError


@dataclass(frozen=True)
class Choice:
    """Which engine trains, and the reason in words."""

    name: str
    reason: str

    def trainer(
        self, network: Network, layout: Layout, examples: Examples, rule: LocalRule, privacy: Privacy, memory_mb: float
    ) -> Trainer:
        """The trainer of that name."""
        if self.name == "loop":
            return Loop(network(), layout, examples, rule, privacy)
        return Stacked(network(), layout, examples, rule, privacy, memory_mb)


@dataclass(frozen=True, kw_only=True)
class LoopEngine(Engine):
    """One client after another."""

    def choose(
        self, network: Network, layout: Layout, examples: Examples, rule: LocalRule, privacy: Privacy, rows: int
    ) -> Choice:
        return Choice("loop", "as asked")


@dataclass(frozen=True, kw_only=True)
class StackedEngine(Engine):
    """All clients of the round at once."""

    def choose(
        self, network: Network, layout: Layout, examples: Examples, rule: LocalRule, privacy: Privacy, rows: int
    ) -> Choice:
        return Choice("stacked", "as asked")


@dataclass(frozen=True, kw_only=True)
class AutoEngine(Engine):
    """Chooses by device and kind of network, else by a short measurement that is made once a machine and remembered."""

    def choose(
        self, network: Network, layout: Layout, examples: Examples, rule: LocalRule, privacy: Privacy, rows: int
    ) -> Choice:
        if examples.x.device.type == "cuda":
            return Choice("stacked", "a GPU runs all rows with the kernels of one")
        if rows == 1:
            return Choice("loop", "one participant")
        if any(isinstance(layer, nn.Conv1d | nn.Conv2d) for layer in network().modules()):
            return Choice("loop", "a CPU runs stacked convolutions slower than one client after another")
        rows = min(rows, 16)
        note = cache_dir() / "engine" / f"{_question(layout, examples, rule, privacy, rows)}.json"
        if note.is_file():
            try:
                known = json.loads(note.read_text())
                return Choice(known["name"], known["reason"] + ", measured earlier on this machine")
            except (ValueError, KeyError):
                pass  # a damaged note is measured again and replaced
        choice = _measure(network, layout, examples, rule, privacy, rows)
        write_atomically(note, json.dumps({"name": choice.name, "reason": choice.reason}).encode())
        return choice


def _question(layout: Layout, examples: Examples, rule: LocalRule, privacy: Privacy, rows: int) -> str:
    """What the measurement depends on, as a digest."""
    machine = (platform.machine(), platform.processor(), torch.__version__, torch.get_num_threads())
    private = privacy.example_clip is not None
    asked = (machine, layout.shapes, tuple(examples.x.shape[1:]), repr(rule), private, privacy.sampling, rows)
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:16]


def _measure(
    network: Network, layout: Layout, examples: Examples, rule: LocalRule, privacy: Privacy, rows: int
) -> Choice:
    """Milliseconds a row and step of both engines on a few made batches; stacking must win clearly to be chosen."""
    size = 20 if rule.batch_size == "full" else rule.batch_size
    count = min(2 * size, len(examples))
    shards = tuple(np.arange(count) for _ in range(rows))
    batches = tuple(draw_batches(rule, count, np.random.default_rng(0), privacy.sampling) for _ in range(rows))
    cut = tuple(
        Batches(each.order[: each.bounds[:3].max()], each.bounds[:3], each.epoch, each.size) for each in batches
    )
    steps = sum(each.steps for each in cut)
    start = torch.zeros((1, layout.size), device=examples.x.device).expand(rows, -1)
    task = Task(start, start[:, : layout.parameters], Plan(np.arange(rows), shards), cut, 0, 0)
    spent = {}
    for name in ("loop", "stacked"):
        trainer = Choice(name, "").trainer(network, layout, examples, rule, privacy, 512.0)
        trainer.run(task, np.arange(rows))
        begin = time.perf_counter()
        trainer.run(task, np.arange(rows))
        spent[name] = (time.perf_counter() - begin) / max(1, steps) * 1e3
    name = "stacked" if spent["stacked"] < 0.8 * spent["loop"] else "loop"
    reason = ", ".join(f"{key} {value:.2f} ms" for key, value in spent.items())
    return Choice(name, f"{reason} a client's step with {rows} clients")
