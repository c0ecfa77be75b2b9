"""TensorBoard: event files in the folder `tensorboard` of the run.

Nothing can be changed in an event file. A process that goes on begins a file of its own, whose first entry takes back
all steps from its first one on: what had been written but not noted in tracker.json is not there twice.
"""

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from fedexp.parts.tracker.contract import Order, Receiver, Sending
from fedexp.parts.tracker.lines import Line, text
from fedexp.parts.tracker.memo import Memo

FOLDER = "tensorboard"


@dataclass(frozen=True, kw_only=True)
class TensorBoard(Sending):
    """Files that `tensorboard --logdir` shows."""

    package = "tensorboard"

    @property
    def named(self) -> tuple[str, ...]:
        """None: its files stay in the folder."""
        return ()

    def open(self, order: Order, known: Memo) -> "Events":
        return Events(order, known)


class Events(Receiver):
    """An event file in the making."""

    def __init__(self, order: Order, known: Memo) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self.order, self.known = order, known
        self.writer = EventFileWriter(str(order.folder / FOLDER))

    def begin(self) -> Memo:
        log, known = _proto("event").SessionLog, self.known
        first = known.round + 1 + known.files if known.run else 0
        self._add(first, session_log=log(status=log.START))
        if not known.run:
            self._describe()
        self.writer.flush()
        return replace(known, run=FOLDER, place=str(self.order.folder))

    def send(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self._add(line.round, summary=_summary(*_scalars(line)))
        self.writer.flush()

    def finish(self, status: str, summary: Line | None, files: Sequence[Path]) -> None:
        if summary is not None:
            pictures = [_picture(path) for path in files if path.suffix == ".png"]
            step = summary.round + 1  # beyond what has arrived: taken back unless all of it does
            self._add(step, summary=_summary(*_scalars(summary), *pictures))
        self.writer.flush()

    def _describe(self) -> None:
        """The config as a text and as hyperparameters, and the tags."""
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        parameters = self.order.parameters
        self._add(0, summary=_summary(_text("config", _table(parameters)), _text("tags", _table(self.order.tags))))
        plain = {name: cell if isinstance(cell, int | float) else text(cell, 200) for name, cell in parameters.items()}
        self._add(0, summary=hparams_pb(plain, trial_id=self.known.token))

    def _add(self, step: int, **what: Any) -> None:
        self.writer.add_event(_proto("event").Event(wall_time=time.time(), step=step, **what))


def size(png: bytes) -> tuple[int, int]:
    """Width and height of a picture in the PNG format: its header, behind 16 bytes."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def _proto(module: str) -> Any:
    """A module of message types, which exist at run time only."""
    return import_module(f"tensorboard.compat.proto.{module}_pb2")


def _summary(*values: Any) -> Any:
    return _proto("summary").Summary(value=values)


def _scalars(line: Line) -> list[Any]:
    kind = _proto("summary").Summary.Value
    return [kind(tag=name, simple_value=cell) for name, cell in line.cells.items() if name != "round"]


def _picture(path: Path) -> Any:
    kind, content = _proto("summary").Summary, path.read_bytes()
    width, height = size(content)
    image = kind.Image(width=width, height=height, colorspace=4, encoded_image_string=content)
    return kind.Value(tag=path.stem, image=image)


def _text(tag: str, content: str) -> Any:
    from tensorboard.plugins.text.metadata import create_summary_metadata

    kind = _proto("types").DT_STRING
    tensor = _proto("tensor").TensorProto(dtype=kind, string_val=[content.encode()])
    metadata = create_summary_metadata(display_name="", description="")
    return _proto("summary").Summary.Value(tag=tag, metadata=metadata, tensor=tensor)


def _table(cells: dict[str, Any]) -> str:
    """A Markdown table."""
    rows = (f"| {name} | {text(value, 2000)} |" for name, value in cells.items())
    return "\n".join(["| key | value |", "|---|---|", *rows])
