"""`from fedexp import run`: runs and sweeps from a script, the same as `fedexp run` with the same words."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.api.finished import Finished, load
from fedexp.api.process import (
    failed_points_as_error,
    one_loop_at_a_time,
    one_run_at_a_time,
    unwrapped_errors,
)
from fedexp.api.python_messages import in_python_words
from fedexp.api.words import Location, compose_any, compose_run, refuse_distributed, run_words, sweep_words
from fedexp.commands import launch
from fedexp.commands.arguments.json_document import silence_stdout
from fedexp.commands.launch import job, remaining_rounds, single, single_rounds
from fedexp.config.trust import Trust
from fedexp.core.errors import ConfigError, RunError
from fedexp.files.atomic import shell_path
from fedexp.files.untrusted import refuse_special_files
from fedexp.run import folders
from fedexp.run.isolation import isolate_process
from fedexp.sweep import command
from fedexp.sweep.frame import frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ConfigError", "Finished", "RunError", "compare", "load", "load_sweep", "resume", "rounds", "run", "sweep"]


def run(
    *overrides: str,
    folder: Location | None = None,
    config_dir: Location | None = None,
    quiet: bool = False,
    resume: bool = False,
    trust_modules: Sequence[str] = (),
    on_round: Callable[[dict[str, Any]], object] | None = None,
    **keys: Any,
) -> Finished:
    """Runs one experiment to its end, as `fedexp run` does, and leaves the process as it was.

    Args:
        overrides: words as on the command line: `"selector=greedyfed"`, `"local.lr=0.05"`.
        folder: where the run writes; by default a new folder under `outputs/` of the working directory.
        config_dir: a folder with options and experiments of your own, as `--config-dir`.
        quiet: whether nothing is printed; `fedexp.log` in the run's folder has it all the same.
        resume: whether a `folder` that holds this run already is gone on with, or only read if the run has ended.
        trust_modules: with `resume`, modules that may have changed since.
        on_round: called after every round with its line of metrics.csv, None for an empty cell. What it raises ends the
            run, which can be resumed, and comes out of `run`.
        keys: the same as words, for names that Python can write: `seed=1`, `**{"local.lr": 0.05}`.

    Raises:
        ConfigError: the experiment cannot work; nothing was written unless its data had to be read to know.
        RunError: the run had to end; `fedexp resume` goes on from the last good state.
    """
    words = run_words(overrides, keys, folder)
    watch = None if on_round is None else _watch(on_round)
    with one_run_at_a_time(), isolate_process(), unwrapped_errors():
        composer, request = compose_run(words, config_dir)
        begun = _begun_folder(folder, resume)
        if begun is None:
            return load(single(composer, request, not quiet, watch))
        for _ in remaining_rounds(composer, request, begun, not quiet, Trust(tuple(trust_modules)), watch):
            pass
        return load(begun)


def rounds(
    *overrides: str,
    folder: Location | None = None,
    config_dir: Location | None = None,
    quiet: bool = False,
    resume: bool = False,
    trust_modules: Sequence[str] = (),
    **keys: Any,
) -> Generator[dict[str, Any], None, None]:
    """Runs one experiment as `run` does, a round at a time: the iterable of a `for` loop.

    Yields the line of metrics.csv of every round, None for an empty cell. A `break` interrupts the run. The same call
    with `resume=True` goes on with what its `folder` holds, and yields the rounds that are missing. While the loop
    lasts, the process is the run's: one computing thread, and its logging; another loop must wait for its end.

    Raises like `run`, in the loop.
    """
    words = run_words(overrides, keys, folder)
    with one_run_at_a_time(), one_loop_at_a_time(), isolate_process(), unwrapped_errors():
        composer, request = compose_run(words, config_dir)
        begun = _begun_folder(folder, resume)
        if begun is None:
            lines = single_rounds(composer, request, not quiet)
        else:
            lines = remaining_rounds(composer, request, begun, not quiet, Trust(tuple(trust_modules)))
        with closing(lines):
            yield from lines


def sweep(
    *overrides: str,
    points: Location | Sequence[Mapping[str, Any]] | None = None,
    folder: Location | None = None,
    config_dir: Location | None = None,
    quiet: bool = False,
    **keys: Any,
) -> "pd.DataFrame":
    """Runs every combination of values, as `fedexp run -m` does: `sweep("algorithm=fedavg,fedprox", seed=[0, 1, 2])`.

    Args:
        overrides: words as on the command line, `"seed=0,1,2"` gives several values.
        points: a file with a point a line, or the points: `[{"algorithm": "fedprox", "local.lr": 0.05}, ...]`.
        folder: where the sweep writes; by default a new folder under `outputs/multirun/`.
        config_dir: as in `run`.
        quiet: whether nothing is printed.
        keys: the same as words; a list, tuple or range gives several values.

    Returns: a row a point, with the keys that differ, `seed`, `folder` and the main numbers of its summary.

    Raises:
        ConfigError: a point cannot work; nothing was run.
        RunError: points failed; the others were run, and `fedexp resume` tries these again.
    """
    words = sweep_words(overrides, keys, points, folder)
    with one_run_at_a_time(), isolate_process(), unwrapped_errors(), silence_stdout(quiet):
        composer, request = compose_any(words, config_dir)
        with failed_points_as_error():
            sweep_folder = command.run(composer, request, job).absolute()
    return frame(sweep_folder)


def resume(
    folder: Location,
    *overrides: str,
    quiet: bool = False,
    trust_modules: Sequence[str] = (),
    config_dir: Location | None = None,
) -> "Finished | pd.DataFrame":
    """Goes on with an interrupted run or sweep, as `fedexp resume` does; of a finished one nothing is left to run.

    Args:
        folder: that of the run, or of the sweep: then its missing, unfinished and failed points are run.
        overrides: what may be chosen anew: `"tracker=mlflow"`, and for a sweep `"hydra/launcher=joblib"`.
        quiet: whether nothing is printed.
        trust_modules: modules that the folder may import though they were never run on this machine, or
            have changed since.
        config_dir: where the options lie that a sweep was begun with.

    Returns: what `run` or `sweep` return.

    Raises:
        ConfigError: there is no run or sweep, or it cannot go on.
        RunError: the run had to end again, or points failed.
    """
    path = Path(folder)
    trust = Trust(tuple(trust_modules), None if config_dir is None else Path(config_dir))
    with one_run_at_a_time(), isolate_process(), unwrapped_errors(), silence_stdout(quiet):
        refuse_distributed()
        if not path.is_dir():
            raise ConfigError(f"there is no folder {path}; resume needs that of a run or a sweep")
        if folders.is_search(path) or folders.is_contest(path):
            raise ConfigError(f"a search or a contest goes on by the command: fedexp resume {shell_path(path)}")
        refuse_special_files(path, writing=True)
        with failed_points_as_error():
            launch.resume(path, overrides, trust)
    return frame(path.absolute()) if folders.is_sweep(path) else load(path, trust_modules=trust_modules)


def load_sweep(folder: Location) -> "pd.DataFrame":
    """The table of a sweep as `sweep` returns it, also of one that has not ended, or whose points failed; runs nothing.

    Raises:
        ConfigError: the folder holds no sweep.
    """
    path = Path(folder)
    if not folders.is_sweep(path):
        raise ConfigError(f"there is no sweep in {path}; load_sweep needs the folder of one, load that of a run")
    return frame(path.resolve())


def compare(
    *runs: Location,
    against: Location | Sequence[Location],
    measures: str | Sequence[str] = (),
    unequal: str | Sequence[str] = (),
) -> "pd.DataFrame":
    """Tests the differences of methods, runs paired by seed, as `fedexp compare` does.

    `compare("many", "algorithm=scaffold", against=["many", "algorithm=fedavg"], measures=["test_accuracy"])`

    Args:
        runs: folders of runs or sweeps, and words KEY=VALUE that pick runs of them: the methods A.
        against: the same of the one method B.
        measures: what is compared; by default the main metric, its area, the loss's area, and rounds to a target.
        unequal: epochs, steps, megabytes: what of the budget may differ.

    Returns: a row a method of A and quantity: mean `difference` A - B with its 95 % interval `low` to `high`, counts of
    wins, ties and losses, two Holm-corrected p-values, what so many pairs could have shown, and the `verdict`. Its
    `attrs["notes"]` are sentences on what was left out or accepted.

    Raises:
        ConfigError: the runs cannot be paired, or are of other data, splits or budgets.
    """
    from fedexp.commands.compare import UNEQUAL, compare_runs
    from fedexp.compare import page

    a_words, b_words, names, accepted = (
        [fspath(entry) for entry in ([words] if isinstance(words, str | PathLike) else words)]
        for words in (runs, against, measures, unequal)
    )
    if odd := set(accepted) - set(UNEQUAL):
        raise ConfigError(f"unequal must name some of {', '.join(UNEQUAL)}, got {min(odd)}")
    with unwrapped_errors():
        comparison = compare_runs(a_words, b_words, names, accepted).comparison
    table = page.frame(comparison)
    table.attrs["notes"] = [*map(in_python_words, comparison.notes)]
    return table


def _begun_folder(folder: Location | None, resume: bool) -> Path | None:
    """The folder of a run that is to be gone on with; None where a new one is to begin."""
    is_begun = resume and folder is not None and folders.is_run(Path(folder))
    return Path(folder) if folder is not None and is_begun else None


def _watch(on_round: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], None]:
    def watch(row: dict[str, Any]) -> None:
        on_round(row)

    return watch
