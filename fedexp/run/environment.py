"""What the bits of a result depend on beside the config: the same sum in another order rounds differently."""

import platform
from importlib.metadata import version

import torch

from fedexp.simulation.experiment import Experiment
from fedexp.training.engine import Choice

MANY_ROWS = "stacked"  # the engine whose batches of rows, and so the order of its sums, follow the number of workers


def device_name(exp: Experiment) -> str:
    """The device in words."""
    place = exp.engine.place()
    return torch.cuda.get_device_name(place) if place.type == "cuda" else f"{platform.machine()} CPU"


def surroundings(exp: Experiment, choice: Choice, workers: int) -> dict[str, str]:
    """Every circumstance by its name; with all of them equal a round comes to the same bits."""
    return {
        "engine": choice.name,
        "device": device_name(exp),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": version("torch"),
        **({"workers": str(workers)} if choice.name == MANY_ROWS else {}),
    }
