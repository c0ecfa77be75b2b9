"""A run in its folder, as scripts look at it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.api.process import one_run_at_a_time, unwrapped_errors
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError
from fedexp.files import run_tables, summary_json
from fedexp.files.atomic import display_path
from fedexp.run import folders
from fedexp.run.isolation import isolate_process

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from fedexp.export.encoder import Encoder


@dataclass(frozen=True, repr=False)
class Finished:
    """A run in its folder; what it holds is read when it is asked for.

    That of `load` may not have ended (`is_finished`): then it has the tables so far, and no summary.
    """

    folder: Path
    trust: Trust = NO_TRUST
    _tables: "dict[str, pd.DataFrame]" = field(default_factory=dict, init=False, compare=False)

    @property
    def is_finished(self) -> bool:
        """Whether the run has come to its end."""
        return folders.is_finished(self.folder)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `summary.json` says.

        Raises:
            ConfigError: the run has not ended.
        """
        summary = summary_json.read(self.folder)
        if summary is None:
            raise ConfigError(
                f"{display_path(self.folder)} has no summary before its end, got {len(self.metrics)} rounds so far; "
                "metrics has their lines, fedexp.resume goes on"
            )
        return summary

    @property
    def metrics(self) -> "pd.DataFrame":
        """metrics.csv, a line a round; of a run that has not ended the lines so far."""
        return self._table("metrics.csv")

    @property
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
            return load_trained(self.folder, round, client, self.trust).network

    @cached_property
    def encoder(self) -> "Encoder":
        """How examples become inputs of the model, and its outputs answers."""
        from fedexp.export.trained_model import load_encoder

        with one_run_at_a_time(), isolate_process(), unwrapped_errors():
            return load_encoder(self.folder, self.trust)

    def __fspath__(self) -> str:
        """The folder, so that a run is taken where the path of one is."""
        return str(self.folder)

    def __repr__(self) -> str:
        """The folder, and what came out in the end, in a line."""
        name = display_path(self.folder)
        if not self.is_finished:
            return f"Unfinished({name!r})"
        final = f"final_{summary_json.main_metric(self.summary)}"
        value = self.summary.get(final)
        score = "" if value is None else f", {final} {value:.4g}"
        return f"{type(self).__name__}({name!r}, {self.summary.get('rounds')} rounds{score})"

    def _table(self, name: str) -> "pd.DataFrame":
        """A table of the folder, which is read once from when the run has ended."""
        if name in self._tables:
            return self._tables[name]
        if not (self.folder / name).is_file():
            raise ConfigError(f"{display_path(self.folder)} has no {name}; the run did not write it")
        is_final = self.is_finished  # before the table is read: the run may end meanwhile
        table = run_tables.read_frame(self.folder / name)
        if is_final:
            self._tables[name] = table
        return table


def load(folder: str | PathLike[str], trust_modules: Sequence[str] = ()) -> Finished:
    """A run that lies in a folder, as `run` returned it; also one that has not ended, with what it has so far.

    `trust_modules` are modules that the folder may import though they were never run on this machine, or have
    changed since.

    Raises:
        ConfigError: it holds no run, several, or one without a round.
    """
    path = Path(folder).absolute()  # which the working folder may leave
    if path.is_symlink():  # outputs/latest will be another run's one day
        path = path.resolve()
    shown = display_path(path)
    if not path.is_dir():
        raise ConfigError(f"there is no folder {shown}; load needs that of a run, e.g. outputs/latest")
    if folders.is_sweep(path):
        raise ConfigError(f"{shown} must be the folder of one run, but is a sweep; fedexp.load_sweep gives its table")
    if folders.is_search(path) or folders.is_contest(path):
        raise ConfigError(f"{shown} must be the folder of one run, but holds several; give one of them")
    if not (path / "metrics.csv").is_file():
        raise ConfigError(f"{shown} must be the folder of a run, but has no metrics.csv; e.g. load('outputs/latest')")
    if not folders.is_finished(path) and not len(run_tables.read_frame(path / "metrics.csv")):
        raise ConfigError(f"{shown} must be the folder of a run that has a round, but metrics.csv has none there")
    return Finished(path, Trust(tuple(trust_modules)))
