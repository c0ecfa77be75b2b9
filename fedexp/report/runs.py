"""Finished and unfinished runs as values: found below folders, and read from the files they left, nothing else.

A column that a folder does not have reads as NaN throughout, so that folders of every age can be compared.
pandas is imported where it is used: a run needs this file for its pictures, at its end.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedexp.config import noted
from fedexp.config.option_names import option_names
from fedexp.config.resolvers import no_environment, register_resolvers
from fedexp.core import csv_table, summary_json
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.core.nested import dotted
from fedexp.core.own_files import refuse_strange
from fedexp.maths.metrics import main_metric, thresholds

if TYPE_CHECKING:
    import pandas as pd


MOST_CLIENTS = 10**7  # a number beyond it is damage, and would fill the memory


@dataclass(frozen=True, eq=False)
class Run:
    """What one run folder tells; `written` is the flat config with its interpolations, `config` the one without.

    Both are without the seed, and what follows from it has the same value in every run.
    """

    folder: Path
    seed: int | None
    choices: Mapping[str, str | None]
    config: Mapping[str, Any]
    written: Mapping[str, Any]
    metrics: "pd.DataFrame"
    selections: np.ndarray  # [N] rounds that each client took part in
    summary: Mapping[str, Any] | None

    @property
    def finished(self) -> bool:
        return self.summary is not None

    @property
    def timed(self) -> bool:
        """Whether a simulated clock ran."""
        return bool(np.isfinite(self.column("sim_s")).any())

    @property
    def rounds(self) -> np.ndarray:
        """The numbers of the rounds, int64 `[rounds]`."""
        return self.metrics["round"].to_numpy(dtype=np.int64)

    @property
    def metric(self) -> str:
        """The main metric."""
        return main_metric(self.metrics)

    def thresholds(self, key: str) -> list[float]:
        """The values of `evaluation.roa` or `evaluation.toa`; none where nobody can resolve them any more."""
        listed = self.config.get(f"evaluation.{key}", ())
        asked = listed if listed is None or isinstance(listed, list | tuple) else ()
        return [float(x) for x in thresholds(asked, self.metric) if isinstance(x, int | float)]

    def column(self, name: str) -> np.ndarray:
        """A column of numbers, float64 `[rounds]`; NaN for every cell that does not exist."""
        import pandas as pd

        if name not in self.metrics:
            return np.full(len(self.metrics), np.nan)
        return np.asarray(pd.to_numeric(self.metrics[name], errors="coerce"), dtype=np.float64)


def shared_metric(runs: Sequence[Run]) -> str:
    """The metric by which runs are shown together: the main one of the first; a run without it has none to show."""
    return runs[0].metric


def collect(directories: Sequence[Path], who: str = "report") -> tuple[list[Run], list[Path]]:
    """The runs below the directories, and the folders of those that have not finished a round.

    `who` asks for them and is named in the errors.

    Raises:
        ConfigError: a directory does not exist or holds no run, or no run has a round to show.
    """
    folders = {folder.resolve(): folder for directory in directories for folder in find(directory, who)}
    found = {folder: read(folder) for folder in folders}
    runs = [run for run in found.values() if run is not None]
    if not runs:
        raise ConfigError(f"{who} needs a finished round, but none of the {len(found)} run(s) given has one yet")
    return runs, [folder for folder, run in found.items() if run is None]


def find(directory: Path, who: str = "report") -> list[Path]:
    """The run folders at or below a directory, numbered ones in the order of their numbers."""
    if not directory.is_dir():
        what = "it is a file" if directory.exists() else "there is none"
        raise ConfigError(f"{who} needs a folder at {directory}, but {what}; give run folders or folders of runs")
    found = sorted(_below(directory), key=natural)
    if not found and (directory / "search.yaml").exists():
        raise ConfigError(
            f"{directory} is a search, whose trials saw no test data; run the commands of its last lines for {who}"
        )
    if not found:
        raise ConfigError(f"{directory} holds no runs: no metrics.csv in it or below; give run folders or a sweep")
    return found


def _below(directory: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(directory):
        if "search.yaml" in files:  # its trials have seen no test data
            folders.clear()
        if "metrics.csv" in files:
            folders.clear()
            yield Path(parent)
        folders[:] = [name for name in folders if not name.startswith(".")]


def natural(path: Path) -> list[tuple[bool, int, str]]:
    """The order of paths in which 10 comes after 2."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in path.parts]


def read(folder: Path) -> Run | None:
    """The run of a folder; None while it has no finished round."""
    refuse_strange(folder)
    metrics = csv_table.frame(folder / "metrics.csv", ("round",))
    if metrics.empty:
        return None
    rounds = metrics["round"].tolist()
    if (whole := csv_table.counted(rounds)) < len(rounds):
        raise ConfigError(
            f"{shown(folder)}/metrics.csv must count its rounds 1, 2, 3, ..., got {rounds[whole]} for {whole + 1}; it "
            "was changed or damaged, and its areas would be wrong"
        )
    seed, written, config = _config(folder)
    summary = summary_json.read(folder)
    return Run(
        folder=folder,
        seed=seed,
        choices=option_names(noted.written(folder), noted.choices(folder)),
        config=config,
        written=written,
        metrics=metrics,
        selections=_selections(folder, summary),
        summary=summary,
    )


def _config(folder: Path) -> tuple[int | None, dict[str, Any], dict[str, Any]]:
    """The seed, and the flat config as written and resolved; where the data lay needs a resolver and plays no part."""
    written = {key: value for key, value in noted.written(folder).items() if key != "data_dir"}
    seed = written.pop("seed", None)
    if seed is not None and type(seed) is not int:
        raise ConfigError(f"{shown(folder)}/.hydra/config.yaml must have a whole number as seed, got {seed!r}")
    register_resolvers()
    try:
        with no_environment(folder):
            resolved = OmegaConf.to_container(OmegaConf.create({**written, "seed": 0}), resolve=True)
    except (OmegaConfBaseException, ConfigError):
        resolved = written
    assert isinstance(resolved, dict)
    return seed, dotted(written), {key: value for key, value in dotted(resolved).items() if key != "seed"}


def _selections(folder: Path, summary: Mapping[str, Any] | None) -> np.ndarray:
    """Rounds that each client took part in; who never did counts too, where the number of clients is known."""
    table = csv_table.frame(folder / "clients.csv", ("round", "client"))
    clients = table["client"].to_numpy(dtype=np.int64) if "client" in table else np.zeros(0, dtype=np.int64)
    known = (summary or {}).get("clients") or len(csv_table.frame(folder / "federation.csv"))
    if (most := max(known, 1 + int(clients.max(initial=-1)))) > MOST_CLIENTS:
        raise ConfigError(f"{shown(folder)} must have at most {MOST_CLIENTS:,} clients, got {most:,}; is it damaged?")
    return np.bincount(clients[clients >= 0], minlength=known)  # the server takes part as client -1
