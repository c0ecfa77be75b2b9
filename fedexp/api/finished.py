"""A run that has ended, as scripts look at it."""

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.api.process import one_run_at_a_time, unwrapped_errors
from fedexp.core.errors import ConfigError
from fedexp.files import summary_json
from fedexp.files.atomic import display_path
from fedexp.run.isolation import isolate_process

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from fedexp.export.encoder import Encoder


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

    def model(self, round: int | None = None, client: int | str | None = None) -> "nn.Module":
        """The trained network on the CPU, after the newest saved round or `round`: everybody's, or a client's.

        It takes what `encoder` makes of examples.

        Raises:
            ConfigError: no state of that round was saved, or there is no such client.
        """
        from fedexp.export.trained_model import load_trained

        with one_run_at_a_time(), isolate_process(), unwrapped_errors():
            return load_trained(self.folder, round, client).network

    @cached_property
    def encoder(self) -> "Encoder":
        """How examples become inputs of the model, and its outputs answers."""
        from fedexp.export.trained_model import load_encoder

        with one_run_at_a_time(), isolate_process(), unwrapped_errors():
            return load_encoder(self.folder)

    def _table(self, name: str) -> "pd.DataFrame":
        import pandas as pd

        return pd.read_csv(self.folder / name)


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
