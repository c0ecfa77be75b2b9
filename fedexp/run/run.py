"""The outer loop: builds a run, resumes and iterates it. `rounds.py` evaluates, the logbook writes and saves."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.config import saved_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError, RunError
from fedexp.core.part import build
from fedexp.core.values import State, Uploads
from fedexp.files import run_tables, summary_json
from fedexp.files.atomic import display_path
from fedexp.files.open_folders import make_folder
from fedexp.parts.tracker.contract import Tracker
from fedexp.process.torchrun import under_torchrun
from fedexp.run import addresses, digests, folders
from fedexp.run.environment import keep_workers
from fedexp.run.logbook import Logbook
from fedexp.run.state import checkpoint
from fedexp.run.state.inputs import digest_inputs, refuse_changed_inputs
from fedexp.run.tables import METRICS, first_columns
from fedexp.simulation.build_world import build_experiment, build_world
from fedexp.simulation.round import Row
from fedexp.simulation.rounds import run_rounds, run_silently, with_workers
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.engine.contract import EngineChoice
from fedexp.training.workers.pool import WorkerPool, join_torchrun

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

Watch = Callable[[Row], None]


def run(config: dict[str, Any], folder: Path, exp: Experiment | None = None, watch: Watch | None = None) -> None:
    """Executes one run in its folder; `exp` is the experiment of the config where it was built already.

    Raises like `rounds` and `watch`.
    """
    _finish(rounds(config, folder, exp, watch))


def rounds(
    config: dict[str, Any], folder: Path, exp: Experiment | None = None, watch: Watch | None = None
) -> Iterator[Row]:
    """Executes a run like `run`, and yields the line of every round; closed early, it leaves a run to be resumed.

    Raises:
        ConfigError: the experiment cannot work, or the folder already holds a run.
        RunError: the run had to end; the last good state is kept.
        FolderGoneError: the folder was removed, renamed or replaced.
    """
    folders.refuse_used(folder)
    make_folder(folder)
    with folders.lock_folder(folder):
        yield from _conduct(config, exp or build_experiment(config), folder, watch)


def complete(config: dict[str, Any], folder: Path, watch: Watch | None = None) -> None:
    """Takes a run from its present state to its end, unless it is finished; raises like `run` and `watch`."""
    _finish(remaining_rounds(config, folder, watch))


def remaining_rounds(config: dict[str, Any], folder: Path, watch: Watch | None = None) -> Iterator[Row]:
    """Takes a run from its present state to its end, and yields the line of every round; none of a finished one.

    Raises like `run` and `watch`.
    """
    with folders.lock_folder(folder):
        if not folders.is_finished(folder):
            yield from _conduct(config, build_experiment(config), folder, watch)


def resume(config: dict[str, Any], folder: Path, trust: Trust = NO_TRUST) -> None:
    """Continues an interrupted run from its last good state; for a finished run, sends what its tracker lacks.

    Raises like `run`.
    """
    addresses.refuse_unknown(config, folder, trust)
    with folders.lock_folder(folder):
        if folders.is_finished(folder):
            table = read_finished_metrics(config, folder)
            log.info("%s is finished: nothing is left to run", folder)
            send(config, folder)
            _refuse_first_model(table)
        else:
            _finish(_conduct(config, build_experiment(config), folder))


def send(config: dict[str, Any], folder: Path) -> None:
    """Sends what the tracker of a finished run lacks, also if the run is old or had another tracker."""
    if "tracker" not in config:
        return
    tracker: Tracker = build(config["tracker"], "tracker")
    tracker.refuse()
    saved_summary = summary_json.read(folder) or {}
    facts = {
        name: saved_summary[name]
        for name in ("versions", "git", "device", "instructions", "engine")
        if name in saved_summary
    }
    tracker.follow(folder, config, lambda: facts).close(None)


def follow(config: dict[str, Any], exp: Experiment | None = None) -> None:
    """What every torchrun process but the first does: takes part in the run, without a folder."""
    _finish(_conduct(config, exp or build_experiment(config), None))


def _finish(lines: Iterator[Row]) -> None:
    for _ in lines:
        pass


def _conduct(config: dict[str, Any], exp: Experiment, folder: Path | None, watch: Watch | None = None) -> Iterator[Row]:
    """Takes a run from its present state to its end; `folder` is None in a worker process, which yields nothing.

    Yields the line of every round once it is written. `watch` is called with it before, and ends the run by raising an
    exception.
    """
    device = exp.engine.activate_device()
    pool = join_torchrun(device) if under_torchrun() else WorkerPool()
    saved = pool.broadcast(_load_state(folder, config, exp) if folder else None)
    state = saved and saved.state
    if folder and state is None and saved_config.exists(folder):
        saved_config.renew_digests(folder)
    world = build_world(exp, EngineChoice(**saved.engine) if saved else None, pool)
    if folder and saved:
        refuse_changed_inputs(folder, saved.inputs, digest_inputs(world), world.exp)
    earlier = saved.surroundings if saved else []
    exp = keep_workers(world.exp, earlier)
    state = state or world.initial_state()
    with with_workers(exp, world, state) as world:
        if folder is None:
            run_silently(exp, world, state)
            return
        with Logbook(folder, exp, world, config, state, earlier) as logbook:
            for state_after, row, uploads in _remaining_rounds(folder, world, state):
                line = logbook.record(state_after, row, uploads)
                if watch is not None:
                    watch(line)
                yield line
            table = logbook.conclude()
    _refuse_first_model(table)


def _refuse_first_model(table: "pd.DataFrame") -> None:
    """Raises RunError where metrics.csv says that no round has changed the model."""
    if run_tables.all_dropped(table):
        raise RunError(
            "no update of any round was finite, so all were dropped and the model is the first one; lower local.lr, or "
            "look for what makes the updates infinite"
        )


def read_finished_metrics(config: dict[str, Any], folder: Path) -> "pd.DataFrame":
    """The metrics.csv of a finished run.

    Raises:
        ConfigError: it does not end where config.json and summary.json say.
    """
    table, summary = run_tables.read_frame(folder / "metrics.csv", METRICS), summary_json.read(folder) or {}
    written, where = int(max(run_tables.numbers(table, "round"), default=0)), display_path(folder)
    if (ended := summary.get("rounds", written)) != written:
        raise ConfigError(
            f"{where} must have a line of metrics.csv for every round of summary.json, which has {ended:,} rounds, got "
            f"{written:,}; put the tables back, or run the experiment again"
        )
    if not summary.get("stopped") and config["rounds"] != written:
        raise ConfigError(
            f"{where} is finished after {written:,} rounds, but its config.json now says rounds={config['rounds']:,}; "
            "what is finished cannot be made longer: put config.json back, and begin a new run with more rounds"
        )
    return table


def _load_state(folder: Path, config: dict[str, Any], exp: Experiment) -> checkpoint.Checkpoint | None:
    """The newest saved state that agrees with the tables, and the engine that made it; None without one."""
    chains = digests.read_chains(folder, first_columns(exp))
    return checkpoint.load(folder, config, exp.engine.resolve_device(), chains.objection)


def _remaining_rounds(folder: Path, world: World, state: State) -> Iterator[tuple[State, Row, Uploads]]:
    """Yields the rounds after a state. Parts read their memories in the first one: its errors are theirs."""
    round_results = run_rounds(world.exp, world, state)
    try:
        first = next(round_results, None)
    except (RunError, OSError):
        raise
    except Exception as error:
        may_be_of_others = world.pool.size > 1 and isinstance(error, RuntimeError)  # one of them may have died
        if not state.round or may_be_of_others:
            raise
        message = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        raise ConfigError(
            f"{display_path(folder)} cannot go on from its state after round {state.round}: {message}; if the part is "
            f"right, delete {checkpoint.NAME} to go on from the state before it"
        ) from error
    if first is not None:
        yield first
        yield from round_results
