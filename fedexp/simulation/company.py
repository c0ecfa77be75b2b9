"""What a run shares with other runs of its process: nothing, unless a launcher runs several as one."""

import torch

from fedexp.core.torchrun import under_torchrun
from fedexp.parts.augment.contract import Augment
from fedexp.parts.dataset.contract import Data, Split
from fedexp.simulation.experiment import Experiment
from fedexp.training.engine import Choice, Engine
from fedexp.training.examples import Examples
from fedexp.training.loop import Trainer
from fedexp.training.made import Made
from fedexp.training.workers import Crew, join_torchrun


class Company:
    """That of a run which has its process to itself."""

    def refuse(self, exp: Experiment) -> None:
        """Raises ConfigError where a run cannot be in this company."""

    def crew(self, device: torch.device) -> Crew:
        """The processes of the run, as far as they are there before its world is."""
        return join_torchrun(device) if under_torchrun() else Crew()

    def data(self, exp: Experiment) -> Data:
        """The dataset, as it was loaded."""
        return exp.dataset.load(exp.data_dir, exp.seed)

    def examples(self, split: Split, data: Data, device: torch.device, augment: Augment | None = None) -> Examples:
        """A split of the data on the device."""
        return Examples(split, data, device, augment)

    def choose(self, engine: Engine, made: Made, rows: int) -> Choice:
        """Which engine trains so many clients a round."""
        return engine.choose(made, rows)

    def trainer(self, choice: Choice, made: Made) -> Trainer:
        """The trainer that was chosen."""
        return choice.trainer(made)


ALONE = Company()
