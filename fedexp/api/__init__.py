"""`from fedexp import run`: runs and sweeps from a script, the same as `fedexp run` with the same words."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from fedexp.api.finished import Finished, load
from fedexp.api.process import one_loop_at_a_time, one_run_at_a_time, unwrapped_errors
from fedexp.api.words import Location, compose_any, compose_run, run_words, sweep_words
from fedexp.commands.arguments.json_document import silence_stdout
from fedexp.commands.launch import job, single, single_rounds
from fedexp.core.errors import ConfigError, RunError
from fedexp.process.exits import CommandExit
from fedexp.run.isolation import isolate_process
from fedexp.sweep import command
from fedexp.sweep.frame import frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ConfigError", "Finished", "RunError", "load", "rounds", "run", "sweep"]


def run(
    *overrides: str,
    folder: Location | None = None,
    config_dir: Location | None = None,
    quiet: bool = False,
    on_round: Callable[[dict[str, Any]], object] | None = None,
    **keys: Any,
) -> Finished:
    """Runs one experiment to its end, as `fedexp run` does, and leaves the process as it was.

    Args:
        overrides: words as on the command line: `"selector=greedyfed"`, `"local.lr=0.05"`.
        folder: where the run writes; by default a new folder under `outputs/` of the working directory.
        config_dir: a folder with options and experiments of your own, as `--config-dir`.
        quiet: whether nothing is printed; `fedexp.log` in the run's folder has it all the same.
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
        return load(single(composer, request, not quiet, watch))


def rounds(
    *overrides: str,
    folder: Location | None = None,
    config_dir: Location | None = None,
    quiet: bool = False,
    **keys: Any,
) -> Generator[dict[str, Any], None, None]:
    """Runs one experiment as `run` does, a round at a time: the iterable of a `for` loop.

    Yields the line of metrics.csv of every round, None for an empty cell. Who leaves the loop, or closes what this
    returns, interrupts the run, and `fedexp resume` goes on with it. While the loop lasts, the process is the run's:
    one computing thread, and its logging; another loop must wait for the end of this one.

    Raises like `run`, in the loop.
    """
    words = run_words(overrides, keys, folder)
    with one_run_at_a_time(), one_loop_at_a_time(), isolate_process(), unwrapped_errors():
        composer, request = compose_run(words, config_dir)
        with closing(single_rounds(composer, request, not quiet)) as lines:
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
        try:
            sweep_folder = command.run(composer, request, job).absolute()
        except CommandExit as stop:
            if stop.is_interrupted or stop.__cause__ is not None:
                raise
            raise RunError(stop.message) from stop
    return frame(sweep_folder)


def _watch(on_round: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], None]:
    def watch(row: dict[str, Any]) -> None:
        on_round(row)

    return watch
