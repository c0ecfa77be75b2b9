"""The record of a run in its folder: tables, saved states, summary, and the environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fedexp.core import csv_table, summary_json
from fedexp.core.csv_table import Line
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.core.values import State
from fedexp.run import checkpoint, digests
from fedexp.run.summary import read_metrics
from fedexp.run.tables import CLIENTS, CLUSTERS, METRICS, cell

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Claim:
    """A saved state: its file, its round, the digest of its models, its clocks, its engine and environment."""

    path: Path
    round: int
    digest: str
    updates: int
    clocks: Line
    engine: dict[str, str]
    surroundings: dict[str, str]


@dataclass(frozen=True)
class Recorded:
    """The record of a run, read from its folder. Tables are as in the files: in that order, with their gaps."""

    folder: Path
    rows: tuple[Line, ...]
    clients: tuple[Line, ...]
    made: tuple[Line, ...]  # digests.csv
    clusters: tuple[Line, ...]
    claims: tuple[Claim, ...]
    damaged: tuple[Path, ...]
    summary: dict[str, Any] | None

    @property
    def ended(self) -> bool:
        """Whether the run came to its end."""
        return self.summary is not None

    @cached_property
    def finished(self) -> int:
        """How many rounds metrics.csv has before the first gap."""
        return csv_table.counted([int(line["round"]) for line in self.rows])

    @property
    def newest(self) -> int:
        """The last round in metrics.csv, gaps or not."""
        return max(int(line["round"]) for line in self.rows)

    @property
    def settled(self) -> int:
        """How many of the finished rounds must be in all tables: a killed run may have been writing the last one."""
        return self.finished - (not self.ended and self.finished == len(self.rows) == len(self.made) + 1)

    @cached_property
    def lines(self) -> dict[int, Line]:
        return {int(line["round"]): line for line in self.rows[: self.finished]}

    @cached_property
    def digests(self) -> dict[int, str]:
        return {int(line["round"]): line["digest"] for line in self.made}

    @cached_property
    def attended(self) -> dict[int, list[Line]]:
        """The lines of clients.csv by round."""
        came: dict[int, list[Line]] = {}
        for line in self.clients:
            came.setdefault(int(line["round"]), []).append(line)
        return came

    @cached_property
    def table(self) -> "pd.DataFrame":
        """metrics.csv as a DataFrame of numbers."""
        return read_metrics(self.folder / "metrics.csv")

    @property
    def starts(self) -> dict[int, Claim]:
        """The rounds after which a replay can start, besides the beginning, each with its state."""
        return {claim.round: claim for claim in self.claims if claim.round <= self.finished}

    @property
    def last(self) -> Claim | None:
        """The state in state.pt, if it can be read."""
        return next((claim for claim in self.claims if claim.path.name == checkpoint.NAME), None)

    @cached_property
    def engine(self) -> dict[str, str] | None:
        """Name and reason of the engine that made the run; None if they are not recorded."""
        if self.claims:
            return self.claims[-1].engine
        told = (self.summary or {}).get("engine") or {}
        return {name: told[name] for name in ("name", "reason")} if "name" in told and "reason" in told else None

    @cached_property
    def surroundings(self) -> list[dict[str, str]]:
        """The environments of the run: one for each saved state, and the one of the summary; none if unknown."""
        saved, summary = [claim.surroundings for claim in self.claims if claim.surroundings], self.summary or {}
        last = {
            "engine": (summary.get("engine") or {}).get("name"),
            "torch": (summary.get("versions") or {}).get("torch"),
            **{name: summary.get(name) for name in ("device", "instructions")},
        }
        known = {name: value for name, value in last.items() if value}
        return [*saved, known] if saved or {"engine", "torch", "device"} <= known.keys() else []


def read(folder: Path, config: dict[str, Any]) -> Recorded:
    """Reads a run folder completely: every saved state is opened.

    Raises:
        ConfigError: no round is over yet, a table or the summary cannot be read, or a state belongs to another config.
    """
    rows = read_whole(folder / "metrics.csv", METRICS)
    if not rows:
        raise ConfigError(f"{shown(folder)} has no finished round in metrics.csv; there is nothing to verify")
    claims, damaged = [], []
    for path in checkpoint.saved(folder):
        found = checkpoint.read(path, config, torch.device("cpu"))
        if found is None:
            damaged.append(path)
        else:
            claims.append(_claim(path, found.state, found.engine, found.surroundings))
    clients, made = read_whole(folder / "clients.csv", CLIENTS), read_whole(folder / digests.NAME, digests.COLUMNS)
    clusters, summary = read_whole(folder / "clusters.csv", CLUSTERS), summary_json.read(folder)
    return Recorded(folder, rows, clients, made, clusters, tuple(claims), tuple(damaged), summary)


def read_whole(path: Path, columns: Sequence[str]) -> tuple[Line, ...]:
    """All lines of a table; none if there is no file."""
    found, there = tuple(csv_table.lines(path, columns)), csv_table.frame(path, columns)
    if len(found) != len(there):
        raise ConfigError(f"{shown(path)} is not a table from line {len(found) + 2} on; is it damaged?")
    return found


def _claim(path: Path, state: State, engine: dict[str, str], surroundings: dict[str, str]) -> Claim:
    clocks = {name: str(cell(getattr(state, name))) for name in ("host_s", "sim_s")}
    return Claim(path, state.round, digests.digest(state.models), state.updates, clocks, engine, surroundings)
