"""How examples become the inputs of a network, and what its outputs say: all that `encoder.json` holds.

Legend: S examples, B batch, F columns, K answers.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import torch

from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.core.fields import describe_value
from fedexp.data.tables.columns import encode_columns
from fedexp.data.tables.encoding import Column
from fedexp.data.tables.replaced_cells import describe_far_numbers, describe_replaced_cells
from fedexp.data.tokens import TextFormat, encode_texts
from fedexp.parts.dataset.contract import Data, Facts, Targets
from fedexp.parts.dataset.normalising import factor_and_offset

if TYPE_CHECKING:
    import pandas as pd

NAME = "encoder.json"
Stored = Literal["uint8", "float32", "int64"]


@dataclass(frozen=True)
class Encoder:
    """How examples become inputs, and outputs answers.

    An example is stored as `dtype` numbers of `shape`; an input is `(x / scale - mean) / std`, per channel (dimension
    1), but for numbers of tokens, which stay as they are. Where there are `columns`, they are how the columns of a
    table become `x`. `answers` are the names of the K classes, labels or numbers; `target_columns` are how numbers that
    are predicted were standardised. `text` says how a text is cut into tokens, which `vocabulary` has by their numbers.
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
    text: TextFormat | None
    vocabulary: tuple[str, ...]

    @property
    def text_columns(self) -> list[str]:
        """The columns of a table that are read as texts."""
        if self.text is not None and self.text.column:
            return [self.text.column]
        return [column.name for column in self.columns if column.categories is not None]

    @property
    def takes_rows(self) -> bool:
        """Whether examples are rows of a table, with `columns` or a column of texts."""
        return bool(self.columns or self.text_columns)

    def rows(self, frame: "pd.DataFrame") -> torch.Tensor:
        """Rows of a table as examples, encoded as for training: float32 `[S, F]`, or int64 `[S, *shape]` of texts.

        Other columns are left out.

        Raises:
            ConfigError: the model is not one of a table, a column is missing, or holds what it must not.
        """
        if not self.columns and self.text is not None and self.text.column:
            texts = _read_texts(frame, self.text.column)
            return torch.from_numpy(encode_texts(texts, self.text.unit, self.vocabulary, self.shape[0]))
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

    def inputs(self, x: "torch.Tensor | np.ndarray") -> torch.Tensor:
        """Examples `[B, *shape]` in their stored form as inputs of the network, float32; tokens stay int64.

        Raises:
            ConfigError: they have another shape or type.
        """
        x = torch.as_tensor(x)
        if tuple(x.shape[1:]) != self.shape or x.dtype != getattr(torch, self.dtype):
            got = f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}"
            channels = ", the channel in front" if len(self.shape) > 1 else ""
            raise ConfigError(f"examples must be {self._description}{channels}, got {got}; turn them into these")
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
            values = outputs.detach().double().numpy()
            return {
                f"predicted {column.name}": values[:, number] * column.std + column.mean
                for number, column in enumerate(columns)
            }
        outputs = outputs.detach()
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
        text=data.text,
        vocabulary=data.vocabulary,
    )


def _read_texts(frame: "pd.DataFrame", name: str) -> list[str]:
    """The texts of a column. Raises ConfigError if there is no such column, or it holds anything else."""
    if name not in frame.columns:
        raise ConfigError(f"the rows must have the column {name} with the texts; {did_you_mean(name, list(frame))}")
    texts = list(frame[name])
    if odd := [number for number, text in enumerate(texts) if not isinstance(text, str)]:
        raise ConfigError(
            f"{name} must hold texts, but row {odd[0] + 1} has {describe_value(texts[odd[0]])}; fill it in or leave "
            "the row out"
        )
    return texts
