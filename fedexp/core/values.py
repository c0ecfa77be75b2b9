"""The values that travel through a round.

Legend: C participants of the round, N clients, M models, D entries of a model, P trainable entries, B batch,
S examples, K classes. A client's model is a row; what travels is the delta against what was dispatched.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from fedexp.core.device_arrays import Rows, as_matrix, finite, subtract_rows

SERVER = -1
LABEL_BYTES = 8  # of an example that is sent

Memory = dict[str, Any]
Columns = dict[str, float | None]  # what a part reports of a round, by name; None where there is nothing


@dataclass(frozen=True)
class Layout:
    """Names and shapes of one network's entries in a flat row: trainable first, float buffers after them."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    trainable: int  # how many of the names are trainable

    @staticmethod
    def of(network: nn.Module) -> "Layout":
        """The layout of a network. Integer buffers are no part of a row; a mean of them means nothing."""
        parameters, buffers = [*network.named_parameters()], network.named_buffers()
        entries = parameters + [(name, buffer) for name, buffer in buffers if buffer.is_floating_point()]
        return Layout(tuple(dict(entries)), tuple(tuple(entry.shape) for _, entry in entries), len(parameters))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of elements of each entry."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @cached_property
    def size(self) -> int:
        """Number of entries D of a row."""
        return sum(self.sizes)

    @cached_property
    def parameters(self) -> int:
        """Number of trainable entries P of a row."""
        return sum(self.sizes[: self.trainable])

    def columns(self, names: Collection[str]) -> np.ndarray:
        """The columns `[m]` of a row, ascending, that the entries of these names take."""
        return np.flatnonzero(np.repeat([name in names for name in self.names], self.sizes))

    def views(self, row: torch.Tensor) -> dict[str, torch.Tensor]:
        """Named views into a row `[D]` (or into its trainable beginning `[P]`)."""
        pieces = row.split(self.sizes if len(row) == self.size else self.sizes[: self.trainable])
        return {name: piece.view(shape) for name, piece, shape in zip(self.names, pieces, self.shapes, strict=False)}

    def flatten(self, network: nn.Module) -> torch.Tensor:
        """The row `[D]` that a network's present entries make."""
        entries = dict(network.named_parameters()) | dict(network.named_buffers())
        return torch.cat([entries[name].detach().reshape(-1) for name in self.names])


@dataclass(frozen=True)
class Weights:
    """One model: a flat row `[D]` and its layout."""

    flat: torch.Tensor
    layout: Layout


@dataclass(frozen=True)
class ClientTable:
    """Columns that all have a row for each entry of `owner [C]`."""

    owner: np.ndarray

    def where(self, keep: np.ndarray) -> Self:
        """The rows that `keep` names (a mask `[C]`, or positions in any order)."""
        positions = np.flatnonzero(keep) if keep.dtype == bool else keep
        if np.array_equal(positions, np.arange(len(self.owner))):
            return self
        return replace(self, **{column.name: _take(getattr(self, column.name), positions) for column in fields(self)})


def _take(column: Any, positions: np.ndarray) -> Any:
    if isinstance(column, dict):
        return {name: _take(rows, positions) for name, rows in column.items()}
    if isinstance(column, tuple | list):
        return tuple(column[position] for position in positions.tolist())
    if isinstance(column, torch.Tensor):
        index, is_one_row = torch.from_numpy(positions).to(column.device), column.stride(0) == 0
        return column[: len(positions)] if is_one_row else column.index_select(0, index)
    return column[positions] if isinstance(column, np.ndarray) else column


def concatenate_rows(tables: Sequence[Any]) -> Any:
    """The rows of several such dataclasses, one after another; what is no column is that of the first."""
    if len(tables) == 1:
        return tables[0]
    columns = {field.name: [getattr(table, field.name) for table in tables] for field in fields(tables[0])}
    return replace(tables[0], **{name: _concatenate(pieces) for name, pieces in columns.items()})


def _concatenate(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], tuple | list):
        return tuple(value for piece in pieces for value in piece)
    return {torch.Tensor: torch.cat, np.ndarray: np.concatenate}.get(type(pieces[0]), lambda them: them[0])(pieces)


@dataclass(frozen=True)
class Plan(ClientTable):
    """Who trains on what: `owner [C]` (a client number, or SERVER) and an array of example indices for each row.

    The order of the rows is the order of upload. `importance [C]` multiplies a row's weight in a weighted mean (None:
    1); `deadline_s` is how many simulated seconds the round may take (None: no limit).
    """

    shards: tuple[np.ndarray, ...]
    importance: np.ndarray | None = None
    deadline_s: float | None = None

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of examples of each row, int64 [C]."""
        return np.array([len(shard) for shard in self.shards], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Jobs(Plan):
    """What the server sent out: one job of training for each row of a plan.

    `model [C]` (one of the M), `begun [C]` (the round in which it was sent: its draws follow); `sent` gives its models.
    """

    model: np.ndarray
    begun: np.ndarray
    sent: Callable[[int], tuple[Weights, ...]]
    seconds: float | None = None  # simulated, until all have arrived; None: the fleet says


@dataclass(frozen=True)
class Trained:
    """The result of a round's training, one row for each participant.

    `owner [C]`, `steps [C]` (how many it took), `received_rows [C, D]` (what the server sent it), `start_rows [C, D]`
    (what it began from), `rows [C, D]` (what it ended with), `slot [C, P]` (the last slot of its optimizer, if the rule
    asks), `completed [C]` (whether it trained to the end; True: all did).
    """

    owner: np.ndarray
    steps: np.ndarray
    received_rows: Rows
    start_rows: Rows
    rows: torch.Tensor
    slot: torch.Tensor | None = None
    completed: np.ndarray | bool = True

    @cached_property
    def received_matrix(self) -> torch.Tensor:
        """What the server sent, as one matrix `[C, D]`."""
        return as_matrix(self.received_rows)

    @cached_property
    def start_matrix(self) -> torch.Tensor:
        """What clients began from, as one matrix `[C, D]`."""
        return as_matrix(self.start_rows)

    def delta(self) -> torch.Tensor:
        """The rows minus what was received, `[C, D]`. Overwrites `rows`, so that the largest matrix is not copied."""
        return subtract_rows(self.rows, self.received_rows)

    def valid_rows(self) -> np.ndarray:
        """Which rows are valid, bool [C]: of clients that trained to the end, in some steps, and to a finite row."""
        return finite(self.rows) & self.completed & (self.steps > 0) & (self.owner != SERVER)


@dataclass(frozen=True)
class Uploads(ClientTable):
    """What reached the server, one row for each participant.

    `owner [C]`, `model [C]` (which of the M models it was given), `examples [C]` (how many it trained on),
    `importance [C]` (see `Plan`), `delta [C, D]`, `loss_before [C]` and `loss_after [C]` (its own data's running loss
    in the first and the last local epoch), `exact [C, 2]` (if asked for: the loss on its own data of the model that it
    began with and of the one that it trained), `length [C]` (to how many plain steps its update amounts, None where
    nobody says), `extra` (the rows `[C, P]` that the local rule sends besides, by name).

    On the way from client to server all rows of a client are one message: `delta [C, W]` holds the extra rows behind
    the delta, and `extra` is empty.
    """

    model: np.ndarray
    examples: np.ndarray
    importance: np.ndarray
    delta: torch.Tensor
    loss_before: np.ndarray
    loss_after: np.ndarray
    exact: np.ndarray | None = None
    length: np.ndarray | None = None
    extra: dict[str, torch.Tensor] = field(default_factory=dict)

    def is_finite(self) -> np.ndarray:
        """Whose rows, the extra ones included, hold only finite numbers, bool [C]."""
        return np.logical_and.reduce([finite(rows) for rows in (self.delta, *self.extra.values())])

    def with_delta(self, delta: torch.Tensor) -> "Uploads":
        """A copy with other rows `[C, D]`."""
        return replace(self, delta=delta)

    def without_rows(self) -> "Uploads":
        """A copy whose rows have no entries, and keep no memory."""
        return replace(self, delta=self.delta.new_empty((len(self.delta), 0)), extra={})

    def sort_by_owner(self) -> "Uploads":
        """A copy ordered by owner, so that sums do not depend on the order of arrival."""
        return self.where(np.argsort(self.owner, kind="stable"))


@dataclass(frozen=True)
class State:
    """Everything that changes from round to round; saving it is the checkpoint, loading it the resume."""

    round: int
    models: tuple[Weights, ...]
    memory: dict[str, Memory] = field(default_factory=dict)
    sim_s: float = 0.0  # simulated seconds so far
    host_s: float = 0.0  # seconds of the host so far
    updates: int = 0  # clients whose training was computed so far


@dataclass(frozen=True)
class Canaries:
    """Examples of the privacy audit; a coin decided whether their client trains on them: `x [m, ...]`, `y [m]`.

    Their numbers `index [m]` follow those of all other training examples. `owner [m]` is the client that trains on them
    if `included [m]`; nobody trains on the others.
    """

    index: np.ndarray
    x: torch.Tensor
    y: torch.Tensor
    owner: np.ndarray
    included: np.ndarray
