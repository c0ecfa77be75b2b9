"""The files that Weights & Biases writes offline: which steps of a run they hold.

A `.wandb` file is a log as LevelDB has them: a header, and blocks with pieces of records, each behind a checksum, its
length and its kind. What a process that was killed had not finished at the end is no record.
"""

from collections.abc import Iterator
from pathlib import Path
from struct import unpack_from
from typing import Any

BLOCK, HEAD = 32768, 7  # bytes of a block, and of what stands before each piece and before all blocks
WHOLE, LAST = 1, 4  # kinds of pieces that end a record


def read_records(path: Path) -> Iterator[Any]:
    """The complete records of a `.wandb` file, as `wandb.proto` has them, in the order in which they were written."""
    from wandb.proto import wandb_internal_pb2

    content, position, text = path.read_bytes(), HEAD, b""
    while position + HEAD <= len(content):
        room = BLOCK - position % BLOCK
        if room < HEAD:  # too little for a piece, and filled
            position += room
            continue
        _, length, kind = unpack_from("<IHB", content, position)
        piece = content[position + HEAD : position + HEAD + length]
        if not kind or len(piece) < length:
            return
        position, text = position + HEAD + length, text + piece
        if kind in (WHOLE, LAST):
            record = vars(wandb_internal_pb2)["Record"]()
            record.ParseFromString(text)
            yield record
            text = b""


def last_step(folder: Path, run: str, project: str) -> int:
    """The last step of a project's run in the files below the folder `wandb`; 0 if there is none."""
    last = 0
    for path in folder.glob(f"offline-run-*-{run}/*.wandb"):
        is_wanted = False
        for record in read_records(path):
            if record.WhichOneof("record_type") == "run":
                is_wanted = record.run.project == project
            elif is_wanted and record.WhichOneof("record_type") == "history":
                last = max(last, record.history.step.num)
    return last
