"""What a run folder claims: the lines of its rounds, their digests, the saved states, and where it was made."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.run import checkpoint, digests

Line = dict[str, str]  # of metrics.csv, by column


@dataclass(frozen=True)
class Claim:
    """A saved state: its file, its round, the digest of its models, and what it says of its making."""

    path: Path
    round: int
    digest: str
    engine: dict[str, str]
    surroundings: dict[str, str]


@dataclass(frozen=True)
class Recorded:
    """A run folder, read and never written."""

    folder: Path
    lines: dict[int, Line]
    digests: dict[int, str]
    claims: tuple[Claim, ...]
    damaged: tuple[Path, ...]

    @property
    def finished(self) -> int:
        """How many rounds are written down."""
        return max(self.lines, default=0)

    @property
    def starts(self) -> dict[int, Claim]:
        """The rounds after which a replay can begin beside the beginning, with what it begins from."""
        return {claim.round: claim for claim in self.claims if claim.round <= self.finished}

    @cached_property
    def engine(self) -> dict[str, str] | None:
        """Name and reason of the engine that made the run; None where nothing tells."""
        if self.claims:
            return self.claims[-1].engine
        told = self._summary.get("engine")
        return None if told is None else {"name": told["name"], "reason": told["reason"]}

    @cached_property
    def surroundings(self) -> list[dict[str, str]]:
        """Where the run was made, a part each where it was resumed; less is known of runs of before it was saved."""
        told = [claim.surroundings for claim in self.claims if claim.surroundings]
        if told or not self._summary:
            return told
        summary = self._summary
        return [
            {"engine": summary["engine"]["name"], "device": summary["device"], "torch": summary["versions"]["torch"]}
        ]

    @cached_property
    def _summary(self) -> dict[str, Any]:
        path = self.folder / "summary.json"
        try:
            return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        except ValueError:
            return {}


def read(folder: Path, config: dict[str, Any]) -> Recorded:
    """Reads a run folder whole: every saved state is opened.

    Raises:
        ConfigError: no round is over yet, a table cannot be read, or a state belongs to another config.
    """
    lines = dict(_rounds(folder / "metrics.csv"))
    if not lines:
        raise ConfigError(f"{shown(folder)} has no finished round in metrics.csv; there is nothing to verify")
    made = {number: line.get("digest", "") for number, line in _rounds(folder / digests.NAME)}
    claims, damaged = [], []
    for path in checkpoint.saved(folder):
        found = checkpoint.read(path, config, torch.device("cpu"))
        if found is None:
            damaged.append(path)
            continue
        state = found.state
        claims.append(Claim(path, state.round, digests.digest(state.models), found.engine, found.surroundings))
    return Recorded(folder, lines, made, tuple(claims), tuple(damaged))


def _rounds(path: Path) -> Iterator[tuple[int, Line]]:
    """The complete lines of a table that begins with the round; nothing where there is none."""
    if not path.exists():
        return
    whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
    for line in csv.DictReader(whole.splitlines()):
        try:
            yield int(line["round"]), line
        except (KeyError, ValueError):
            raise ConfigError(f"{shown(path)} must begin each line with its round, got {line.get('round')!r}") from None
