"""Computes rounds again from a saved state, in a world that is built as for the run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError
from fedexp.core.values import State
from fedexp.files.run_tables import Line
from fedexp.run import digests
from fedexp.run.environment import surroundings
from fedexp.run.state import checkpoint
from fedexp.run.tables import format_cell, metrics_columns, round_rows
from fedexp.simulation.build_world import build_experiment, build_world
from fedexp.simulation.measures import all as measures
from fedexp.simulation.measures import server_data, validation
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.engine.contract import EngineChoice
from fedexp.training.workers.pool import WorkerPool
from fedexp.verify.own_files import with_own_files
from fedexp.verify.record import SavedState


@dataclass(frozen=True)
class RecomputedRound:
    """A round that was computed again."""

    state: State
    line: Line  # of metrics.csv
    tables: Mapping[str, list[Line]]  # the lines of the other tables by name

    @property
    def round(self) -> int:
        return self.state.round

    @property
    def digest(self) -> str:
        return digests.digest(self.state.models)


@dataclass(frozen=True)
class Rerun:
    """The world of a run, built again so that any of its rounds can be recomputed."""

    config: dict[str, Any]
    world: World

    @property
    def exp(self) -> Experiment:
        return self.world.exp

    @property
    def surroundings(self) -> dict[str, str]:
        """The environment of this process, on which the bits of a result depend."""
        exp = self.exp
        workers = exp.engine.worker_count(exp.usual_participants(self.world.partition.clients))
        return surroundings(exp, self.world.choice, workers)

    @property
    def is_deterministic(self) -> bool:
        """Whether a round gives the same bits each time: not on a GPU, which may add in another order."""
        return self.exp.engine.resolve_device().type == "cpu"

    def state(self, saved_state: SavedState | None) -> State:
        """The state in a saved file; without one, the state before the first round."""
        if saved_state is None:
            return self.world.initial_state()
        loaded_checkpoint = checkpoint.read(saved_state.path, self.config, self.exp.engine.resolve_device())
        if loaded_checkpoint is None:
            raise ConfigError(f"{saved_state.path} changed while it was verified; verify again")
        return loaded_checkpoint.state

    def recompute_rounds(self, saved_state: SavedState | None, last: int) -> Iterator[RecomputedRound]:
        """Yields the rounds after a state, up to `last`; raises RunError if a round cannot be completed."""
        state, exp = self.state(saved_state), replace(self.exp, rounds=last)
        with with_workers(exp, self.world, state) as world:
            for state_after, row, uploads in run_rounds(exp, world, state):
                line = dict.fromkeys(metrics_columns(exp)) | row
                rows = round_rows(exp, world, state_after, line, uploads)
                tables = {name: [*map(format_row, table_rows)] for name, table_rows in rows.items()}
                yield RecomputedRound(state_after, tables.pop("metrics.csv")[0], tables)

    def scores(self, saved_state: SavedState) -> Line:
        """The scores of a state's models on test and validation data, by column of metrics.csv."""
        world, state = self.world, self.state(saved_state)
        column_scores: dict[str, Any] = server_data.score(self.exp, world, state, world.test).columns("test")
        if world.validation_size:
            column_scores |= validation.score(self.exp, world, state).columns("validation")
        attack_scores, _ = measures.probes(world, state)()
        return format_row(column_scores | attack_scores)


def format_row(row: Mapping[str, Any]) -> Line:
    """The row of a table as it is written to CSV: every cell as text."""
    return {name: str(format_cell(value)) for name, value in row.items()}


def build_rerun(config: dict[str, Any], engine: dict[str, str] | None, folder: Path | None = None) -> Rerun:
    """Builds the world of a run folder, with the engine of the run if it is known."""
    choice = EngineChoice(**engine) if engine else None
    config_here = with_own_files(config, folder) if folder else config
    return Rerun(config, build_world(build_experiment(config_here), choice, WorkerPool()))
