"""Where metrics are sent besides the run folder: write here how a connection sends rounds and files.

As it stands, every round is a line of JSON in a file. A process of its own sends; whatever a connection raises is tried
again on a new one, whose `begin` says which round has arrived last.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedexp.parts import Line, Order, Receiver, SendingTracker, SyncState


class JsonLines(Receiver):
    """A file that grows by one line a round."""

    def __init__(self, path: Path, state: SyncState) -> None:
        self.path, self.state = path, state

    def begin(self) -> SyncState:
        lines = self.path.read_text().splitlines(keepends=True) if self.path.exists() else []
        if lines and not lines[-1].endswith("\n"):  # its sender was killed in the middle of it
            self.path.write_text("".join(lines[:-1]))
        last = max((int(json.loads(line).get("round", 0)) for line in lines if line.endswith("\n")), default=0)
        return replace(self.state, run=self.path.name, place=str(self.path.parent), round=last)

    def send(self, lines: Sequence[Line]) -> None:
        with self.path.open("a") as file:
            file.write("".join(f"{json.dumps(dict(line.cells))}\n" for line in lines))

    def finish(self, status: str, summary: Line | None, files: Sequence[Path]) -> None:
        """Nothing more is sent at the end."""


class OwnTracker(SendingTracker):
    """The file `name` in the run folder."""

    package = "json"  # what must be installed, and what the log calls it

    name: str = "rounds.jsonl"

    def open(self, order: Order, state: SyncState) -> Receiver:
        return JsonLines(order.folder / self.name, state)
