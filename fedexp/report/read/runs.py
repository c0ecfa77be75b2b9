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

from fedexp.config import saved_config
from fedexp.config.option_names import option_names
from fedexp.config.saved_config import SavedConfig
from fedexp.core.errors import ConfigError
from fedexp.core.nested import flatten_keys
from fedexp.files import run_tables, summary_json
from fedexp.files.atomic import display_path
from fedexp.files.failure import read_failure
from fedexp.files.untrusted import refuse_special_files
from fedexp.maths.curve_metrics import area_to_end, area_under, final, last, main_metric, thresholds

if TYPE_CHECKING:
    import pandas as pd


CODE = "code."  # what the keys begin with that tell the digests of modules
_DIGEST = 8  # signs of a module's digest that are shown
MOST_CLIENTS = 10**7  # a number beyond it is damage, and would fill the memory


@dataclass(frozen=True, eq=False)
class Run:
    """The contents of a run folder; `config` is the flat resolved config, `raw_config` has interpolations.

    `config` is without the seed, and what follows from it has the same value in every run. Of modules of the user's own
    it has the digests, by `code.NAME`.
    """

    folder: Path
    seed: int | None
    choices: Mapping[str, str | None]
    config: Mapping[str, Any]
    raw_config: Mapping[str, Any]
    metrics: "pd.DataFrame"
    selections: np.ndarray  # [N] rounds that each client took part in
    summary: Mapping[str, Any] | None

    @property
    def is_finished(self) -> bool:
        return self.summary is not None

    @property
    def has_rounds(self) -> bool:
        """Whether it has finished a round."""
        return len(self.metrics) > 0

    @property
    def failure(self) -> str | None:
        """The words of the error that ended it; None where none did."""
        return read_failure(self.folder)

    @property
    def has_failed(self) -> bool:
        """Whether no update of any round was finite, so that its model is the first one."""
        return run_tables.all_dropped(self.metrics)

    @property
    def has_simulated_clock(self) -> bool:
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
        values = listed if listed is None or isinstance(listed, list | tuple) else ()
        return [float(x) for x in thresholds(values, self.metric) if isinstance(x, int | float)]

    def column(self, name: str) -> np.ndarray:
        """A column of numbers, float64 `[rounds]`; NaN for every cell that does not exist."""
        return run_tables.numbers(self.metrics, name)

    def final(self, name: str) -> float | None:
        """A column's value in the last round, which is always evaluated; of an unfinished run the last that exists."""
        return (last if self.is_finished else final)(self.column(name))

    def area(self, name: str) -> float | None:
        """The area under a column's curve; of an unfinished run up to the last value that exists."""
        return (area_to_end if self.is_finished else area_under)(self.column(name))


def shared_metric(runs: Sequence[Run]) -> str:
    """The metric by which runs are shown together: the main one of the first with a round; others may have none."""
    return next((run for run in runs if run.has_rounds), runs[0]).metric


def collect_runs(directories: Sequence[Path], command: str = "report") -> tuple[list[Run], list[Run]]:
    """The runs below the directories, and those that have not finished a round.

    `command` asks for them and is named in the errors.

    Raises:
        ConfigError: a directory does not exist or holds no run, or no run has a round to show.
    """
    folders = {folder.resolve(): folder for directory in directories for folder in find_run_folders(directory, command)}
    runs_by_folder = {folder: read(folder) for folder in folders}
    runs = [run for run in runs_by_folder.values() if run.has_rounds]
    if not runs:
        raise ConfigError(
            f"{command} needs a finished round, but none of the {len(runs_by_folder)} run(s) given has one yet"
        )
    return runs, [run for run in runs_by_folder.values() if not run.has_rounds]


def find_run_folders(directory: Path, command: str = "report") -> list[Path]:
    """The run folders at or below a directory, numbered ones in the order of their numbers."""
    if not directory.is_dir():
        problem = "it is a file" if directory.exists() else "there is none"
        raise ConfigError(
            f"{command} needs a folder at {directory}, but {problem}; give run folders or folders of runs"
        )
    run_folders = sorted(_below(directory), key=natural_order)
    if not run_folders and (directory / "search.yaml").exists():
        raise ConfigError(
            f"{directory} is a search, whose trials saw no test data; run the commands of its last lines for {command}"
        )
    if not run_folders:
        raise ConfigError(f"{directory} holds no runs: no metrics.csv in it or below; give run folders or a sweep")
    return run_folders


def _below(directory: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(directory):
        if "search.yaml" in files:  # its trials have seen no test data
            folders.clear()
        if "metrics.csv" in files:
            folders.clear()
            yield Path(parent)
        folders[:] = [name for name in folders if not name.startswith(".")]


def natural_order(path: Path) -> list[tuple[bool, int, str]]:
    """The order of paths in which 10 comes after 2."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in path.parts]


def read(folder: Path) -> Run:
    """The run of a folder; its tables are empty while it has no finished round."""
    refuse_special_files(folder)
    metrics = run_tables.read_frame(folder / "metrics.csv", ("round",))
    rounds = metrics["round"].tolist() if len(metrics) else []
    if (consecutive := run_tables.count_consecutive(rounds)) < len(rounds):
        raise ConfigError(
            f"{display_path(folder)}/metrics.csv must count its rounds 1, 2, 3, ..., got {rounds[consecutive]} for "
            f"{consecutive + 1}; it was changed or damaged, and its areas would be wrong"
        )
    saved = _saved_config(folder)
    summary = summary_json.read(folder)
    code = {f"{CODE}{name.replace('.', '/')}": digest[:_DIGEST] for name, digest in saved.modules.items()}
    return Run(
        folder=folder,
        seed=_seed(saved, folder),
        choices=option_names(saved.raw_config, saved.choices),
        config=_comparable_keys(saved) | code,
        raw_config=flatten_keys(saved.raw_config) | code,
        metrics=metrics,
        selections=_selections(folder, summary) if len(metrics) else np.zeros(0, np.int64),
        summary=summary,
    )


def _saved_config(folder: Path) -> SavedConfig:
    """What the folder says of its config: nothing if it never had one."""
    if saved_config.exists(folder) or (folder / saved_config.FOLDER).exists():
        return saved_config.read(folder)
    return SavedConfig({}, {}, {}, [])


def _seed(saved: SavedConfig, folder: Path) -> int | None:
    seed = saved.config.get("seed")
    if seed is not None and type(seed) is not int:
        raise ConfigError(
            f"{display_path(folder / saved_config.NAME)} must have a whole number as seed, got {repr(seed)[:60]}"
        )
    return seed


def _comparable_keys(saved: SavedConfig) -> dict[str, Any]:
    """The flat config without the seed and the place of the data; what follows from these is left as it was written."""
    following = saved_config.following_keys(saved.references, {"seed", "data_dir"})
    keys = flatten_keys(saved.config) | {key: saved.references[key] for key in following}
    return {key: value for key, value in keys.items() if key not in ("seed", "data_dir")}


def _selections(folder: Path, summary: Mapping[str, Any] | None) -> np.ndarray:
    """Rounds that each client took part in; who never did counts too, where the number of clients is known."""
    table = run_tables.read_frame(folder / "clients.csv", ("round", "client"))
    clients = table["client"].to_numpy(dtype=np.int64) if "client" in table else np.zeros(0, dtype=np.int64)
    client_count = (summary or {}).get("clients") or len(run_tables.read_frame(folder / "federation.csv"))
    if (most := max(client_count, 1 + int(clients.max(initial=-1)))) > MOST_CLIENTS:
        raise ConfigError(
            f"{display_path(folder)} must have at most {MOST_CLIENTS:,} clients, got {most:,}; is it damaged?"
        )
    return np.bincount(clients[clients >= 0], minlength=client_count)  # the server takes part as client -1
