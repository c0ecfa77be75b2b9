"""The engine option: which trainer runs, on which device, with how many workers."""

import logging
import os
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.core.errors import ConfigError, RunError, first_line
from fedexp.core.part import Part, Positive, Range, describe_choice
from fedexp.core.values import Plan
from fedexp.process.cpu_cores import usable_cores
from fedexp.process.user_code_errors import arose_in_part
from fedexp.training.client.batches import Batches
from fedexp.training.client.precision import make_deterministic
from fedexp.training.client.recipe import TrainerSpec
from fedexp.training.loop.trainer import LoopTrainer, Task, Trainer
from fedexp.training.stacked.row_groups import has_convolutions
from fedexp.training.stacked.trainer import StackedTrainer
from fedexp.training.stacked.vmap_check import vmap_obstacle

log = logging.getLogger(__name__)

MIN_PARTICIPANTS, MAX_PARAMETERS = 32, 20_000  # at least and at most: there stacking was faster on a CPU
CPU_STACK_MB = 2048.0


class Engine(Part):
    """How the clients of a round are executed; the choice never changes the result beyond rounding."""

    workers: Annotated[int, Range(1, 256)] | Literal["auto"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    memory_mb: Annotated[float, Positive] | Literal["auto"] = "auto"
    evaluation_chunk: Annotated[int, Range(1)] | Literal["auto"] = "auto"

    def refuse(self) -> None:
        """Raises ConfigError if this machine cannot do what is asked."""
        if self.device == "cuda" and not torch.cuda.is_available():
            raise ConfigError("engine.device=cuda needs a CUDA device, but PyTorch sees none; use engine.device=auto")
        if self.precision == "tf32" and self.resolve_device().type != "cuda":
            raise ConfigError("engine.precision=tf32 needs a GPU, but this run has none; use engine.precision=float32")
        if self.workers not in ("auto", 1) and not hasattr(os, "fork"):
            raise ConfigError(
                f"engine.workers must be 1 or auto where processes cannot fork, got {self.workers}; start the run with "
                "torchrun --no-python --nproc-per-node WORKERS fedexp run ..."
            )
        if self.resolve_device().type == "cuda" and self.workers not in ("auto", 1):
            raise ConfigError(
                f"engine.workers must be 1 or auto on a GPU, got {self.workers}; for several GPUs start the run with "
                "torchrun --no-python --nproc-per-node GPUS fedexp run ..."
            )

    def resolve_device(self) -> torch.device:
        """Returns the device of the run: the first GPU if there is one, or that of LOCAL_RANK (torchrun sets it).

        Raises:
            ConfigError: there is no such GPU.
        """
        if self.device == "cpu" or (self.device == "auto" and not torch.cuda.is_available()):
            return torch.device("cpu")
        number, gpus = os.environ.get("LOCAL_RANK", "0"), torch.cuda.device_count()
        if not number.isdecimal() or int(number) >= gpus:
            raise ConfigError(
                f"LOCAL_RANK must be the number of a GPU, below {gpus}, got {number}; unset it, start torchrun with "
                "--nproc-per-node at most the number of GPUs, or set engine.device=cpu"
            )
        return torch.device("cuda", int(number))

    def activate_device(self) -> torch.device:
        """Makes the run's device the current one of this process, and returns it."""
        device = self.resolve_device()
        if device.type == "cuda":
            torch.cuda.set_device(device)
            make_deterministic(tf32=self.precision == "tf32")
        return device

    @property
    def forks(self) -> bool:
        """Whether workers are forks of this process: on CPUs, where processes can fork."""
        return self.resolve_device().type == "cpu" and hasattr(os, "fork")

    def worker_count(self, participants: int) -> int:
        """Returns the number of processes: as configured, else one per usable core, at most one per participant."""
        if self.workers != "auto":
            return self.workers
        if not self.forks:
            return 1
        return max(1, min(usable_cores(), participants))

    def stack_memory_mb(self) -> float:
        """Returns what clients that train together may take: by default half of a GPU's memory, 2,048 MB on a CPU."""
        if self.memory_mb != "auto":
            return self.memory_mb
        device = self.resolve_device()
        return torch.cuda.get_device_properties(device).total_memory / 2e6 if device.type == "cuda" else CPU_STACK_MB

    def evaluation_batch_size(self, floats: int) -> int:
        """Returns the batch size of evaluation, given the floats that one example needs."""
        if self.evaluation_chunk != "auto":
            return self.evaluation_chunk
        budget = 2**30 if self.resolve_device().type == "cuda" else 2**23
        return int(np.clip(budget // floats, 50, 10_000))

    @abstractmethod
    def choose(self, spec: TrainerSpec, rows: int) -> "EngineChoice":
        """Chooses the trainer, and gives the reason."""
        raise NotImplementedError


@dataclass(frozen=True)
class EngineChoice:
    """The chosen engine, and the reason for the log."""

    name: str
    reason: str

    def make_trainer(self, spec: TrainerSpec) -> Trainer:
        """Builds the chosen trainer and warms it up with one step on a few examples.

        Raises:
            ConfigError: it cannot train such a network by such a rule.
        """
        try:
            if self.name == "loop":
                trainer = LoopTrainer(spec.build_network(), spec.layout, spec.examples, spec.recipe)
            else:
                trainer = StackedTrainer(
                    *(spec.build_network(), spec.layout, spec.examples, spec.recipe, spec.memory_mb, spec.participants)
                )
            warm_up(trainer, spec)
        except (ConfigError, RunError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            if arose_in_part(error):
                raise
            raise ConfigError(
                f"engine={self.name} cannot train this model by {describe_choice('local', spec.recipe.rule)}: "
                f"{type(error).__name__}: {first_line(error)}"
            ) from error
        return trainer

    def keep_recorded(self, recorded: "EngineChoice | None") -> "EngineChoice":
        """Returns the engine that a resumed run continues with: the recorded one, whatever would be chosen today."""
        if recorded is None:
            return self
        if recorded.name not in ("loop", "stacked"):
            raise ConfigError(
                f"the saved state must name the engine loop or stacked, got {recorded.name!r}; start a new run"
            )
        if recorded.name != self.name:
            log.warning(
                "engine %s trained the rounds so far and goes on; today %s would be chosen: %s",
                recorded.name,
                self.name,
                self.reason,
            )
        return recorded


class LoopEngine(Engine):
    """One client after another."""

    def choose(self, spec: TrainerSpec, rows: int) -> EngineChoice:
        return EngineChoice("loop", "as asked")


class StackedEngine(Engine):
    """All clients of the round at once."""

    def choose(self, spec: TrainerSpec, rows: int) -> EngineChoice:
        if (why := stacking_obstacle(spec)) is not None:
            raise ConfigError(f"engine=stacked cannot train this model: {why}; {_suggest_alternative(spec)}")
        return EngineChoice("stacked", "as asked")


class AutoEngine(Engine):
    """Chooses by the config and the kind of device alone: measured times would let equal runs choose differently."""

    def choose(self, spec: TrainerSpec, rows: int) -> EngineChoice:
        if spec.examples.x.device.type == "cuda":
            reason = "a GPU runs all rows with the kernels of one"
        elif rows < MIN_PARTICIPANTS:
            return EngineChoice("loop", f"on a CPU, fewer than {MIN_PARTICIPANTS} participants")
        elif spec.layout.parameters > MAX_PARAMETERS:
            return EngineChoice("loop", f"on a CPU, more than {MAX_PARAMETERS:,} parameters")
        elif has_convolutions(spec.probe_network):
            return EngineChoice("loop", "a CPU runs stacked convolutions slower than one client after another")
        else:
            reason = f"on a CPU, at least {MIN_PARTICIPANTS} participants and at most {MAX_PARAMETERS:,} parameters"
        if (why := stacking_obstacle(spec)) is not None:
            return EngineChoice("loop", f"clients cannot be stacked: {why}")
        return EngineChoice("stacked", reason)


def stacking_obstacle(spec: TrainerSpec) -> str | None:
    """Returns why clients with such a network cannot be trained together; None if they can."""
    examples, network = spec.examples, spec.build_network()
    if examples.augment.one_by_one:
        return f"{describe_choice('augment', examples.augment)} changes one image after another"
    why = vmap_obstacle(network, examples.inputs(slice(0, 2)))
    if why is not None:
        return why
    try:
        warm_up(StackedTrainer(network, spec.layout, examples, spec.recipe, 64.0), spec)
    except (ConfigError, RunError, torch.OutOfMemoryError):  # too little memory says nothing of the network
        raise
    except Exception as error:  # whatever torch.func raises about a layer
        return f"{type(error).__name__}: {first_line(error)}"
    return None


def _suggest_alternative(spec: TrainerSpec) -> str:
    """Suggests what to use where clients cannot be trained together."""
    try:
        warm_up(LoopTrainer(spec.build_network(), spec.layout, spec.examples, spec.recipe), spec)
    except Exception as error:  # whatever the network or torch.func raises
        return f"nor can engine=loop: {type(error).__name__}: {first_line(error)}"
    return "use engine=loop"


def warm_up(trainer: Trainer, spec: TrainerSpec) -> None:
    """Trains two clients for one step on a few examples and drops the result, since a first step is slow."""
    layout, examples, recipe = spec.layout, spec.examples, spec.recipe
    sizes = np.clip([4, 3], 1, len(examples))
    batches = tuple(Batches(np.arange(size), np.array([0, size]), 1, int(size)) for size in sizes)
    start = torch.zeros((2, layout.size), device=examples.x.device)
    plan = Plan(np.arange(2), tuple(np.arange(size) for size in sizes))
    reference_rows = start.expand(len(recipe.rule.compares), -1, -1) if recipe.rule.compares else None
    counts = torch.ones((2, recipe.classes), device=start.device) if recipe.rule.counts_classes else None
    task = Task(start, start[:, : layout.parameters], plan, batches, 0, 0, reference_rows=reference_rows, counts=counts)
    trainer.run(task, np.arange(2))
