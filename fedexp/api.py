"""`from fedexp import run`: one run from a script, the same as `fedexp run` with the same words."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from hydra.core.override_parser.overrides_parser import OverridesParser

from fedexp.commands.launch import single
from fedexp.config.compose import Composer, Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.config.override_text import override_text
from fedexp.core.errors import ConfigError, RunError
from fedexp.files import summary_json
from fedexp.files.atomic import display_path
from fedexp.process.exits import CommandExit
from fedexp.process.torchrun import under_torchrun
from fedexp.run.isolation import isolate_process

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from fedexp.export.encoder import Encoder
    from fedexp.export.trained_model import TrainedModel

__all__ = ["ConfigError", "Finished", "RunError", "load", "run"]

_RUN_LOCK = threading.RLock()
_SWEEPS = "sweeps are for the command line (fedexp run -m ...), or call run once for each value"


@dataclass(frozen=True)
class Finished:
    """A run that has ended: its folder and what `summary.json` says; the tables are read when they are asked for."""

    folder: Path
    summary: dict[str, Any]

    @cached_property
    def metrics(self) -> "pd.DataFrame":
        """metrics.csv, a line a round."""
        return self._table("metrics.csv")

    @cached_property
    def clients(self) -> "pd.DataFrame":
        """clients.csv, a line for each client of each round."""
        return self._table("clients.csv")

    def model(self, round: int | None = None, client: int | None = None) -> "nn.Module":
        """The trained network on the CPU, after the newest saved round or `round`: everybody's, or the one of a client.

        It takes what `encoder` makes of examples.

        Raises:
            ConfigError: no state of that round was saved, or there is no such client.
        """
        return self._load_trained(round, client).network

    @cached_property
    def encoder(self) -> "Encoder":
        """How examples become inputs of the model, and its outputs answers."""
        return self._load_trained(None, 0).encoder

    def _load_trained(self, number: int | None, client: int | None) -> "TrainedModel":
        from fedexp.export.trained_model import load_trained

        with _one_run_at_a_time(), isolate_process(), _unwrapped_errors():
            return load_trained(self.folder, number, client)

    def _table(self, name: str) -> "pd.DataFrame":
        import pandas as pd

        return pd.read_csv(self.folder / name)


def run(
    *overrides: str,
    folder: str | PathLike[str] | None = None,
    config_dir: str | PathLike[str] | None = None,
    quiet: bool = False,
    **keys: Any,
) -> Finished:
    """Runs one experiment to its end, as `fedexp run` does, and leaves the process as it was.

    Args:
        overrides: words as on the command line: `"selector=greedyfed"`, `"local.lr=0.05"`.
        folder: where the run writes; by default a new folder under `outputs/` of the working directory.
        config_dir: a folder with options and experiments of your own, as `--config-dir`.
        quiet: whether nothing is printed; `fedexp.log` in the run's folder has it all the same.
        keys: the same as words, for names that Python can write: `seed=1`, `**{"local.lr": 0.05}`.

    Raises:
        ConfigError: the experiment cannot work; nothing was written unless its data had to be read to know.
        RunError: the run had to end; `fedexp resume` goes on from the last good state.
    """
    words = [*overrides, *(f"{key}={override_text(value)}" for key, value in keys.items())]
    if folder is not None:
        words.append(f"hydra.run.dir={override_text(folder)}")
    options_folder = Path(config_dir) if config_dir is not None else None
    with _one_run_at_a_time(), isolate_process(), _unwrapped_errors():
        _refuse_distributed()
        _refuse_flags(words)
        request = Request(conf_dir(), words, config_dir=options_folder)
        composer = make_composer(request)
        _refuse_sweeps(composer, words)
        run_folder = single(composer, request, console=not quiet)
    return Finished(run_folder, json.loads((run_folder / "summary.json").read_text(encoding="utf-8")))


def load(folder: str | PathLike[str]) -> Finished:
    """A finished run that lies in a folder, as `run` returned it.

    Raises:
        ConfigError: it holds no finished run.
    """
    path = Path(folder)
    summary = summary_json.read(path) if path.is_dir() else None
    if summary is None:
        raise ConfigError(f"{display_path(path)} must be the folder of a finished run, but has no summary.json")
    return Finished(path, summary)


@contextmanager
def _one_run_at_a_time() -> Iterator[None]:
    """Allows one run at a time: logging, signals and environment belong to the process; threads would share them."""
    if not _RUN_LOCK.acquire(blocking=False):
        raise ConfigError("run makes one run at a time in a process, but another thread runs one; start processes")
    try:
        yield
    finally:
        _RUN_LOCK.release()


@contextmanager
def _unwrapped_errors() -> Iterator[None]:
    """Raises the error behind an exit, which the command line would have printed in one line."""
    try:
        yield
    except CommandExit as stop:
        if stop.__cause__ is None:
            raise
        raise stop.__cause__ from None


def _refuse_distributed() -> None:
    if under_torchrun():
        raise ConfigError("run in a script must be the only process, got torchrun; use torchrun -m fedexp run ...")
    if dist.is_initialized():
        raise ConfigError("run makes its own process group; end yours with torch.distributed.destroy_process_group()")


def _refuse_flags(words: list[str]) -> None:
    for word in words:
        if not isinstance(word, str):
            raise ConfigError(f"run takes words such as 'selector=random', got {word!r}; name values: seed=1")
        if word in ("-m", "--multirun", "hydra.mode=MULTIRUN"):
            raise ConfigError(f"run makes one run, got {word}; {_SWEEPS}")
        if word.startswith("-"):
            raise ConfigError(f"run takes key=value and group=option, got the flag {word}; leave it out")


def _refuse_sweeps(composer: Composer, words: list[str]) -> None:
    with composer.explain_errors(None, words):
        for override in OverridesParser.create().parse_overrides(words):
            if override.is_sweep_override():
                raise ConfigError(f"run makes one run, but {override.input_line} gives several values; {_SWEEPS}")
