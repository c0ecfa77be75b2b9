"""What the runs of one process share: a meeting of those that train in one stack, and equal data, held once."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, ref

import torch

from fedexp.core.errors import ConfigError
from fedexp.parts.augment.contract import Augment
from fedexp.parts.dataset.contract import Data, Split
from fedexp.simulation.company import Company
from fedexp.simulation.experiment import Experiment
from fedexp.sweep.strands import Strand
from fedexp.training.engine import Choice, Engine
from fedexp.training.examples import Examples
from fedexp.training.loop import Trainer
from fedexp.training.made import Made
from fedexp.training.meeting import Meeting
from fedexp.training.twins import alike
from fedexp.training.workers import Crew

DATASETS = 4  # that are kept after the runs that loaded them


class Shared:
    """What a process holds for all its runs."""

    def __init__(self) -> None:
        self.meeting = Meeting()
        self.loaded: deque[tuple[tuple, Data]] = deque(maxlen=DATASETS)
        self.placed: list[OnDevice] = []

    def data(self, exp: Experiment) -> Data:
        """The dataset; another run's where it is equal."""
        asked = (exp.dataset, exp.data_dir, exp.seed)
        known = next((data for key, data in self.loaded if alike(key, asked)), None)
        if known is None:
            fresh = exp.dataset.load(exp.data_dir, exp.seed)
            known = next((data for _, data in self.loaded if alike(_told(data), _told(fresh))), fresh)
            self.loaded.append((asked, known))
        return known

    def examples(self, split: Split, data: Data, device: torch.device, augment: Augment | None) -> Examples:
        """A split on the device; another run's where it is the same."""
        facts = (data.scale, data.mean, data.std, device, augment or Augment())
        self.placed = [one for one in self.placed if one.there() is not None]
        for one in self.placed:
            there = one.there()
            if there is not None and one.of(split) and alike(one.facts, facts):
                return there
        made = Examples(split, data, device, augment)
        self.placed.append(OnDevice(ref(split.x), ref(split.y), facts, ref(made)))
        return made


@dataclass(frozen=True)
class OnDevice:
    """Examples on a device, and what they were made of, as long as somebody holds them."""

    x: ReferenceType[torch.Tensor]
    y: ReferenceType[torch.Tensor]
    facts: tuple
    there: ReferenceType[Examples]

    def of(self, split: Split) -> bool:
        """Whether they were made of this split."""
        return self.x() is split.x and self.y() is split.y


class Heeding(Crew):
    """The only process of a run that is a strand; between two steps it looks whether the sweep was interrupted."""

    stacks_runs = True

    def __init__(self, strand: Strand) -> None:
        super().__init__()
        self.strand = strand

    def watch(self, done: int, steps: int) -> None:
        self.strand.heed()

    def claim(self, jobs: int) -> Iterator[int]:
        for position in super().claim(jobs):
            self.strand.heed()
            yield position


class Companion(Company):
    """The company of one of several runs of a process."""

    def __init__(self, shared: Shared, strand: Strand) -> None:
        self.shared, self.strand = shared, strand

    def refuse(self, exp: Experiment) -> None:
        refuse_workers(exp.engine.workers)

    def crew(self, device: torch.device) -> Crew:
        return Heeding(self.strand)

    def data(self, exp: Experiment) -> Data:
        return self.shared.data(exp)

    def examples(self, split: Split, data: Data, device: torch.device, augment: Augment | None = None) -> Examples:
        return self.shared.examples(split, data, device, augment)

    def choose(self, engine: Engine, made: Made, rows: int) -> Choice:
        known = self.shared.meeting.knows(made)
        return engine.choose(made, rows, stackable=known)

    def trainer(self, choice: Choice, made: Made) -> Trainer:
        return self.shared.meeting.trainer(choice, made, self.strand.ask)


def refuse_workers(workers: object) -> None:
    """Raises ConfigError where a run that shares its process asks for several."""
    if workers not in ("auto", 1):
        raise ConfigError(
            f"engine.workers must be 1 or auto with hydra/launcher=together, got {workers}; use "
            "hydra.launcher.jobs for several processes, or another launcher"
        )


def _told(data: Data) -> dict[str, Any]:
    return {**vars(data), "train": vars(data.train), "test": vars(data.test)}
