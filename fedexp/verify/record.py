"""The record of a run in its folder: tables, saved states, summary, and the environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fedexp.core.errors import ConfigError
from fedexp.files import run_tables, summary_json
from fedexp.files.atomic import display_path
from fedexp.files.run_tables import Line
from fedexp.run import digests
from fedexp.run.state import checkpoint
from fedexp.run.summary import read_metrics
from fedexp.run.tables import TABLES, format_cell

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SavedState:
    """A saved state: its file, its round, the digest of its models, its clocks, its environments, and what it read."""

    path: Path
    round: int
    digest: str
    updates: int
    clocks: Line
    engine: dict[str, str]
    surroundings: list[dict[str, str]]
    inputs: dict[str, str]


@dataclass(frozen=True)
class RunRecord:
    """The record of a run, read from its folder. Tables are as in the files: in that order, with their gaps."""

    folder: Path
    tables: Mapping[str, tuple[Line, ...]]  # by file name; none of a file that is not there
    saved_states: tuple[SavedState, ...]
    damaged: tuple[Path, ...]
    summary: dict[str, Any] | None

    @property
    def has_ended(self) -> bool:
        """Whether the run came to its end."""
        return self.summary is not None

    def rounds(self, name: str) -> list[int]:
        """The numbers in the first column of a table."""
        return [int(line["round"]) for line in self.tables[name]]

    @cached_property
    def finished_rounds(self) -> int:
        """How many rounds metrics.csv has before the first gap."""
        return run_tables.count_consecutive(self.rounds("metrics.csv"))

    @cached_property
    def newest_round(self) -> int:
        """The last round in metrics.csv, gaps or not."""
        return max(self.rounds("metrics.csv"))

    @property
    def required_rounds(self) -> int:
        """How many of the finished rounds must be in all tables: a killed run may have been writing the last one."""
        rows, digest_lines = len(self.tables["metrics.csv"]), len(self.tables[digests.NAME])
        return self.finished_rounds - (not self.has_ended and self.finished_rounds == rows == digest_lines + 1)

    @cached_property
    def lines(self) -> dict[int, Line]:
        """The lines of metrics.csv before the first gap."""
        return {int(line["round"]): line for line in self.tables["metrics.csv"][: self.finished_rounds]}

    @cached_property
    def chains(self) -> digests.Chains:
        """The lines of digests.csv before the first gap, and what must fit them."""
        return digests.make_chains(self.tables[digests.NAME], {name: self.tables[name] for name in TABLES})

    @cached_property
    def lines_by_round(self) -> dict[tuple[str, int], list[Line]]:
        """The lines of each table and round."""
        return {
            (name, number): [*round_lines]
            for name, lines in self.tables.items()
            for number, round_lines in groupby(lines, digests.round_of)
        }

    @cached_property
    def table(self) -> "pd.DataFrame":
        """metrics.csv as a DataFrame of numbers."""
        return read_metrics(self.folder / "metrics.csv")

    @property
    def starts(self) -> dict[int, SavedState]:
        """The rounds after which rounds can be computed again, besides the beginning, each with its state."""
        return {state.round: state for state in self.saved_states if state.round <= self.finished_rounds}

    @property
    def last(self) -> SavedState | None:
        """The state in state.pt, if it can be read."""
        return next((state for state in self.saved_states if state.path.name == checkpoint.NAME), None)

    @cached_property
    def engine(self) -> dict[str, str] | None:
        """Name and reason of the engine that made the run; None if they are not recorded."""
        if self.saved_states:
            return self.saved_states[-1].engine
        engine = (self.summary or {}).get("engine") or {}
        return {name: engine[name] for name in ("name", "reason")} if {"name", "reason"} <= engine.keys() else None

    @cached_property
    def surroundings(self) -> list[dict[str, str]]:
        """The environments of the run: those of the saved states, and the one of the summary; none if unknown."""
        saved, summary = [*chain(*(state.surroundings for state in self.saved_states))], self.summary or {}
        texts = {
            "engine": (summary.get("engine") or {}).get("name"),
            "torch": (summary.get("versions") or {}).get("torch"),
            **{name: summary.get(name) for name in ("device", "instructions")},
        }
        last = {name: text for name, text in texts.items() if text}
        return [*saved, last] if saved or {"engine", "torch", "device"} <= last.keys() else []


def read(folder: Path, config: dict[str, Any]) -> RunRecord:
    """Reads a run folder completely: every saved state is opened.

    Raises:
        ConfigError: no round is over yet, a table or the summary cannot be read, or a state belongs to another config.
    """
    columns = {**TABLES, digests.NAME: digests.COLUMNS}
    tables = {name: read_table(folder / name, needed) for name, needed in columns.items()}
    if not tables["metrics.csv"]:
        raise ConfigError(f"{display_path(folder)} has no finished round in metrics.csv; nothing in it can be used")
    saved_states, damaged = [], []
    for path in checkpoint.list_states(folder):
        saved_checkpoint = checkpoint.read(path, config, torch.device("cpu"))
        if saved_checkpoint is None:
            damaged.append(path)
        else:
            saved_states.append(_saved_state(path, saved_checkpoint))
    return RunRecord(folder, tables, tuple(saved_states), tuple(damaged), summary_json.read(folder))


def read_table(path: Path, columns: Sequence[str]) -> tuple[Line, ...]:
    """All lines of a table; none if there is no file."""
    table_lines, frame = tuple(run_tables.read_lines(path, columns)), run_tables.read_frame(path, columns)
    if len(table_lines) != len(frame):
        raise ConfigError(f"{display_path(path)} is not a table from line {len(table_lines) + 2} on; is it damaged?")
    return table_lines


def _saved_state(path: Path, saved: checkpoint.Checkpoint) -> SavedState:
    state, digest = saved.state, digests.digest(saved.state.models)
    clocks = {name: str(format_cell(getattr(state, name))) for name in ("host_s", "sim_s")}
    return SavedState(path, state.round, digest, state.updates, clocks, saved.engine, saved.surroundings, saved.inputs)
