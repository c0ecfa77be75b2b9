"""TensorBoard: event files in the folder `tensorboard` of the run.

Nothing can be changed in an event file. A process that goes on begins a file of its own, whose first entry takes back
all steps from its first one on: what had been written but not noted in tracker.json is not there twice.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedexp.parts.tracker.contract import Order, Receiver, SendingTracker
from fedexp.parts.tracker.lines import Line, text
from fedexp.parts.tracker.memo import SyncState

FOLDER = "tensorboard"


class TensorBoard(SendingTracker):
    """Files that `tensorboard --logdir` shows."""

    package = "tensorboard"

    @property
    def named_addresses(self) -> tuple[str, ...]:
        """None: its files stay in the folder."""
        return ()

    def open(self, order: Order, state: SyncState) -> "EventFile":
        return EventFile(order, state)


class EventFile(Receiver):
    """An event file in the making."""

    def __init__(self, order: Order, state: SyncState) -> None:
        from torch.utils.tensorboard import SummaryWriter

        events = order.folder / FOLDER
        is_lost = not any(events.glob("events.*"))
        self.order, self.state = order, replace(state, run="", round=0, files=False) if is_lost else state
        first = state.round + 1 + state.files if self.state.run else 0
        self.writer = SummaryWriter(events, purge_step=first)

    def begin(self) -> SyncState:
        if not self.state.run:
            self._write_config()
        self.writer.flush()
        return replace(self.state, run=FOLDER, place=str(self.order.folder))

    def send(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self._add(line, line.round)
        self.writer.flush()

    def finish(self, status: str, summary: Line | None, files: Sequence[Path]) -> None:
        if summary is not None:
            step = summary.round + 1  # beyond what has arrived: taken back unless all of it does
            self._add(summary, step)
            for path in files:
                if path.suffix == ".png":
                    self.writer.add_image(path.stem, _pixels(path), step, dataformats="HWC")
        self.writer.flush()

    def _write_config(self) -> None:
        """The config as a text and as hyperparameters, and the tags."""
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        parameters = self.order.parameters
        self.writer.add_text("config", _table(parameters), 0)
        self.writer.add_text("tags", _table(self.order.tags), 0)
        hyperparameters = {
            name: cell if isinstance(cell, int | float) else text(cell, 200) for name, cell in parameters.items()
        }
        assert self.writer.file_writer is not None  # its own add_hparams would begin a second file
        self.writer.file_writer.add_summary(hparams_pb(hyperparameters, trial_id=self.state.token), 0)

    def _add(self, line: Line, step: int) -> None:
        for name, cell in line.cells.items():
            if name != "round":
                self.writer.add_scalar(name, cell, step)


def _pixels(path: Path) -> np.ndarray:
    """A picture `[height, width, 4]`."""
    from PIL import Image

    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGBA"))


def _table(cells: dict[str, Any]) -> str:
    """A Markdown table."""
    rows = (f"| {name} | {text(value, 2000)} |" for name, value in cells.items())
    return "\n".join(["| key | value |", "|---|---|", *rows])
