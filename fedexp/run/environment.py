"""The environment that the bits of a result depend on besides the config: sums in another order round differently."""

import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

from fedexp.simulation.setup.experiment import Experiment
from fedexp.training.engine.contract import EngineChoice

BATCHING_ENGINE = "stacked"  # it groups rows by workers, and kernels may sum in another order for more rows


@cache
def installed_version(package: str) -> str:
    """The version of an installed package; cached, since looking it up is slow."""
    return version(package)


def device_name(exp: Experiment) -> str:
    """The name of the device, as people know it."""
    device = exp.engine.resolve_device()
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} CPU"


def instructions() -> str:
    """The widest instructions of the CPU that PyTorch uses, and its name: libraries choose kernels by both."""
    return f"{torch.backends.cpu.get_cpu_capability()} ({processor()})"


@cache
def processor() -> str:
    """The name of the CPU."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def changed_surroundings(then: list[dict[str, str]], now: dict[str, str]) -> str | None:
    """How the environment of a run differed from the present one, in words; None if it did not."""
    if not then:
        return "the folder does not say where it was made"
    changes = [
        f"{name} {was[name]} then, {now.get(name, 'none')} now"
        for was in then
        for name in was
        if was[name] != now.get(name)
    ]
    return ", ".join(dict.fromkeys(changes)) or None


def keep_workers(exp: Experiment, earlier: Sequence[dict[str, str]]) -> Experiment:
    """The experiment with as many workers as in the last of `earlier` environments, if bits depend on their number.

    What the config sets stays.
    """
    workers = earlier[-1].get("workers", "") if earlier else ""
    if not workers.isdecimal() or exp.engine.workers != "auto" or not exp.engine.forks:
        return exp
    return replace(exp, engine=replace(exp.engine, workers=int(workers)))


def surroundings(exp: Experiment, choice: EngineChoice, workers: int) -> dict[str, str]:
    """The environment by name; where all of it is equal, a round gives the same bits."""
    return {
        "engine": choice.name,
        "device": device_name(exp),
        "instructions": instructions(),
        "torch": installed_version("torch"),
        **({"workers": str(workers)} if choice.name == BATCHING_ENGINE else {}),
    }
