"""How examples become the inputs of a network, and what its outputs say: all that `encoder.json` holds.

Legend: S examples, B batch, F columns, K answers.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.fields import describe_misfit
from fedexp.data.tables.columns import encode_columns
from fedexp.data.tables.encoding import Column
from fedexp.data.tables.replaced_cells import describe_far_numbers, describe_replaced_cells
from fedexp.files.atomic import display_path
from fedexp.files.untrusted_json import read_json
from fedexp.parts.dataset.contract import Data, Facts, Targets
from fedexp.parts.dataset.normalising import factor_and_offset

if TYPE_CHECKING:
    import pandas as pd

NAME = "encoder.json"
Stored = Literal["uint8", "float32", "int64"]
_COLUMNS = ("columns", "target_columns")


@dataclass(frozen=True)
class Encoder:
    """How examples become inputs, and outputs answers.

    An example is stored as `dtype` numbers of `shape`; an input is `(x / scale - mean) / std`, per channel (dimension
    1), but for numbers of tokens, which stay as they are. Where there are `columns`, they are how the columns of a
    table become `x`. `answers` are the names of the K classes, labels or numbers; `target_columns` are how numbers that
    are predicted were standardised. `vocabulary` are the tokens by their numbers.
    """

    dtype: Stored
    shape: tuple[int, ...]
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    columns: tuple[Column, ...]
    targets: Targets
    answers: tuple[str, ...]
    target_columns: tuple[Column, ...]
    vocabulary: tuple[str, ...]

    def rows(self, frame: "pd.DataFrame") -> torch.Tensor:
        """Rows of a table as examples `[S, F]`, float32, encoded as for training; other columns are left out.

        Raises:
            ConfigError: the model is not one of a table, a column is missing, or holds what it must not.
        """
        if not self.columns:
            raise ConfigError(
                f"the model takes examples of shape {list(self.shape)} and no rows of a table; give an array "
                f"{self._description} in a .npy file"
            )
        return torch.from_numpy(encode_columns(frame, self.columns))

    def replaced_cells(self, frame: "pd.DataFrame") -> str:
        """Which columns of rows, as `rows` takes them, have cells that are missing, unknown or out of range, in a line.

        Missing numbers are the mean (the middle of a given range), missing and unknown texts no category, and numbers
        out of range its end. Empty if there are no such cells.
        """
        return describe_replaced_cells(frame, self.columns)

    def far_numbers(self, frame: "pd.DataFrame") -> str:
        """Which columns of rows have numbers far from all of training, in a line; empty if there are none."""
        return describe_far_numbers(frame, self.columns)

    def inputs(self, x: torch.Tensor) -> torch.Tensor:
        """Examples `[B, *shape]` in their stored form as inputs of the network, float32; tokens stay int64.

        Raises:
            ConfigError: they have another shape or type.
        """
        if tuple(x.shape[1:]) != self.shape or x.dtype != getattr(torch, self.dtype):
            got = f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}"
            raise ConfigError(
                f"examples must be {self._description}, got {got}; store them as the training examples were"
            )
        if self.dtype == "int64":
            if len(x) and self.vocabulary and not 0 <= int(x.min()) <= int(x.max()) < len(self.vocabulary):
                raise ConfigError(f"tokens must be numbers from 0 to {len(self.vocabulary) - 1}; see {NAME}")
            return x
        factor, offset = map(self._per_channel, factor_and_offset(self.scale, self.mean, self.std))
        return x.float().mul(factor).add(offset)

    def answer_columns(self, outputs: torch.Tensor) -> dict[str, np.ndarray]:
        """What outputs `[S, K]` of the network say, by name: the likeliest class and probabilities, or numbers.

        Raises:
            ConfigError: the model predicts tokens.
        """
        if self.targets == "tokens":
            raise ConfigError(
                "the model predicts the next token, of which there is no table; ask it in Python, as the card of an "
                'export shows below "Use it without fedexp"'
            )
        if self.targets == "numbers":
            columns = self.target_columns or tuple(map(Column, self.answers))
            values = outputs.double().numpy()
            return {
                f"predicted {column.name}": values[:, number] * column.std + column.mean
                for number, column in enumerate(columns)
            }
        probabilities = (outputs.softmax(dim=1) if self.targets == "class" else outputs.sigmoid()).numpy()
        shares = {f"probability {name}": probabilities[:, number] for number, name in enumerate(self.answers)}
        if self.targets == "labels":
            return shares
        return {"predicted": np.array(self.answers)[probabilities.argmax(axis=1)], **shares}

    def as_json(self) -> dict[str, Any]:
        """The content of `encoder.json`."""
        return asdict(self)

    @property
    def facts(self) -> Facts:
        """What can be said of the examples that the encoder takes, but for how many were trained on."""
        tokens = len(self.vocabulary) if self.dtype == "int64" else 0
        return Facts(self.shape, len(self.answers), 1, None, self.targets, tokens)

    @property
    def _description(self) -> str:
        return f"{self.dtype} {str(['S', *self.shape]).replace(chr(39), '')}"

    def _per_channel(self, values: torch.Tensor) -> torch.Tensor:
        return values.view(-1, *[1] * (len(self.shape) - 1)) if len(values) > 1 else values


def make_encoder(data: Data, facts: Facts, *, raw: bool) -> Encoder:
    """The encoder of a dataset's examples; `raw` where the network's own layers normalise them."""
    return Encoder(
        dtype=cast(Stored, str(data.train.x.dtype).removeprefix("torch.")),
        shape=tuple(facts.shape),
        scale=1.0 if raw else float(data.scale),
        mean=(0.0,) if raw else tuple(map(float, data.mean)),
        std=(1.0,) if raw else tuple(map(float, data.std)),
        columns=data.columns,
        targets=facts.targets,
        answers=data.class_names,
        target_columns=data.target_columns,
        vocabulary=data.vocabulary,
    )


def read_encoder(folder: Path) -> Encoder:
    """The encoder that is saved in an exported folder.

    Raises:
        ConfigError: there is none, or it is not one.
    """
    path = folder / NAME
    content = read_json(path)
    if content is None:
        raise ConfigError(f"{display_path(folder)} has no {NAME}; give the folder that fedexp export wrote")
    encoder = _parse(content)
    fault = encoder if isinstance(encoder, str) else _describe_fault(encoder)
    if isinstance(encoder, str) or fault:
        raise ConfigError(f"{display_path(path)} must be as fedexp export writes it, but {fault}; is it damaged?")
    return encoder


def _parse(content: Mapping[str, Any]) -> Encoder | str:
    """The encoder of plain values, its fields not yet checked; or what is wrong, in words."""
    names = [field.name for field in fields(Encoder)]
    if set(content) != set(names):
        return f"has {', '.join(sorted(content)) or 'nothing'}"
    values = {name: _frozen(content[name]) for name in names}
    for name in _COLUMNS:
        entries = content[name]
        keys = {field.name for field in fields(Column)}
        if not isinstance(entries, list) or not all(
            isinstance(entry, dict) and set(entry) == keys for entry in entries
        ):
            return f"{name} is no list of columns"
        values[name] = tuple(Column(**{key: _frozen(value) for key, value in entry.items()}) for entry in entries)
    return Encoder(**values)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _describe_fault(encoder: Encoder) -> str:
    """What in an encoder's values is of another kind or does not fit together, in words; empty if all does."""
    misfits = (describe_misfit(value) for value in (encoder, *encoder.columns, *encoder.target_columns))
    return next(filter(None, misfits), None) or _describe_contradiction(encoder)


def _describe_contradiction(encoder: Encoder) -> str:
    numbers = (encoder.scale, *encoder.mean, *encoder.std)
    columns = (*encoder.columns, *encoder.target_columns)
    numbers += tuple(number for column in columns for number in (column.mean, column.std))
    if not all(map(math.isfinite, numbers)):
        return "a number in it is not finite"
    if min((encoder.scale, *encoder.std, *(column.std for column in columns)), default=1.0) <= 0:
        return "a scale or deviation in it is not above 0"
    if not encoder.shape or min(encoder.shape) < 1:
        return f"shape is {list(encoder.shape)}"
    if not all(len(column.bounds) == 2 and column.bounds[0] < column.bounds[1] for column in columns if column.bounds):
        return "the bounds of a column do not rise"
    if not {len(encoder.mean), len(encoder.std)} <= {1, encoder.shape[0]}:
        return f"mean and std are not of {encoder.shape[0]} channels"
    if encoder.columns and (sum(column.width for column in encoder.columns),) != encoder.shape:
        return f"its columns do not make {encoder.shape[0]} numbers"
    if encoder.target_columns and len(encoder.target_columns) != len(encoder.answers):
        return "its answers and target columns are not as many"
    return "" if encoder.answers else "it has no answers"
