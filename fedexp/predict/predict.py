"""Answers of an exported model for new examples: rows of a table, or an array of examples.

The network is built by fedexp from the folder's config; `model.py` is never run.
"""

import csv
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from fedexp.config.saved_config import NAME, read_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError, first_line
from fedexp.core.part import build
from fedexp.data.tables import table
from fedexp.export.encoder import Encoder
from fedexp.export.entries import set_entries
from fedexp.export.export import WEIGHTS
from fedexp.export.read_encoder import read_encoder
from fedexp.export.trained_model import join_layers
from fedexp.files.atomic import display_path, write_atomically
from fedexp.files.unwritable import explain_unwritable
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.features.contract import Features
from fedexp.parts.model.contract import Model
from fedexp.parts.model.refit import read_weights

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 1024  # examples at once
ARRAY = ".npy"
_MOST_NUMBERS = 2**28  # of an example
_AGAIN = "export the run again"
_USED = ("model", "features")  # the parts of a config of which the network is made


def predict(
    export: Path, rows: Path, target: Path, trust: Trust = NO_TRUST, *, overwrite: bool = False
) -> tuple[int, list[str]]:
    """Writes a CSV file with the answers of the model in the folder `export` for every row.

    Rows of a table keep their columns, and the answers stand behind them. A file that is there is replaced only with
    `overwrite`.

    Returns: how many answers, and a line on each kind of cells that make answers doubtful.

    Raises:
        ConfigError: the folder, the rows or the target are not what they must be.
    """
    if target.is_dir() or target.suffix != ".csv":
        raise ConfigError(f"--to must name a file that ends in .csv, got {display_path(target)}")
    if target.resolve() == rows.resolve():
        raise ConfigError(f"--to must be another file than the rows, got {display_path(target)} for both")
    if not overwrite and (target.exists() or target.is_symlink()):
        raise ConfigError(
            f"--to must be a new file, but {display_path(target)} is there; give another, or add --overwrite"
        )
    encoder = read_encoder(export)
    if encoder.targets == "tokens":
        raise ConfigError(
            f"predict writes a table of answers, but the model in {display_path(export)} predicts the next token; ask "
            f'it in Python, as {display_path(export / "card.md")} shows below "Use it without fedexp"'
        )
    config = read_config(export, trust, _USED)
    dataset = config.get("dataset")
    channels_last = isinstance(dataset, dict) and dataset.get("layout") == "channels_last"
    frame, examples, notes = _read(rows, encoder, channels_last=channels_last)
    network = load_network(export, config, encoder)
    answers = encoder.answer_columns(_finite_outputs(network, encoder, examples, export))
    if written := [name for name in answers if name in frame.columns]:
        raise ConfigError(f"the rows must not have a column {written[0]}, which is to be written; rename it")
    with explain_unwritable(target, "--to"):
        write_atomically(target, _csv_text(frame.assign(**answers)).encode())
    return len(frame), notes


def load_network(export: Path, config: Mapping[str, Any], encoder: Encoder) -> nn.Module:
    """The network of an exported folder and its config, with its weights.

    Raises:
        ConfigError: the files of the folder do not fit together.
    """
    path = export / WEIGHTS
    for name in _USED:
        if not isinstance(config.get(name), dict):
            raise ConfigError(f"{display_path(export / NAME)} must have a {name}, but has none; is it damaged?")
    if not path.is_file():
        raise ConfigError(f"{display_path(export)} has no {WEIGHTS}; give the folder that fedexp export wrote")
    try:
        weights = read_weights(path)
    except ConfigError as error:
        raise ConfigError(f"{display_path(path)} is damaged, or holds no weights; {_AGAIN}") from error
    parts = [build(config[name], name) for name in _USED]
    for name, kind, part in zip(_USED, (Model, Features), parts, strict=True):
        if not isinstance(part, kind):
            raise ConfigError(f"{name} in {display_path(export / NAME)} must be a {name}, got {type(part).__name__}")
    model, features = parts
    _refuse_larger_network(features, model, encoder.facts, weights, path)
    return set_entries(join_layers(features, model, encoder.facts), weights, display_path(path))


def _refuse_larger_network(
    features: Features, model: Model, facts: Facts, weights: dict[str, torch.Tensor], path: Path
) -> None:
    """Raises ConfigError where the config asks for more entries than the file of `weights` (any shape) holds."""
    if prod(facts.shape) > _MOST_NUMBERS:
        raise ConfigError(f"an example must have at most {_MOST_NUMBERS:,} numbers, got {list(facts.shape)}")
    try:
        with torch.device("meta"):
            network = model.without_files().network(features.facts(facts))
        wanted = sum(entry.numel() for entry in network.state_dict().values())
    except Exception:  # a user's network that reads values while it is made; other errors come again
        return
    if wanted > 2 * sum(entry.numel() for entry in weights.values()) + 2**20:
        raise ConfigError(f"{display_path(path)} must fit the network, which has {wanted:,} entries; is it damaged?")


def outputs(network: nn.Module, encoder: Encoder, examples: torch.Tensor) -> torch.Tensor:
    """The outputs `[S, K]` of the network for examples `[S, *shape]` in their stored form."""
    with torch.no_grad():
        answers = torch.cat([network(encoder.inputs(chunk)) for chunk in examples.split(CHUNK)])
    if encoder.targets != "tokens" and answers.shape[1:] != (len(encoder.answers),):
        raise ConfigError(f"the network must give {len(encoder.answers)} answers, got {list(answers.shape[1:])}")
    return answers


def _finite_outputs(network: nn.Module, encoder: Encoder, examples: torch.Tensor, export: Path) -> torch.Tensor:
    """The outputs `[S, K]` for examples `[S, *shape]`.

    Raises:
        ConfigError: one is not finite, or layers and entries of the network do not fit together, which shows only here.
    """
    try:
        answers = outputs(network, encoder, examples)
    except RuntimeError as error:  # of PyTorch, about shapes
        raise ConfigError(
            f"the network in {display_path(export)} cannot take the examples: {first_line(error)}; {_AGAIN}"
        ) from error
    is_finite = answers.isfinite().flatten(1).all(dim=1)
    if not is_finite.all():
        raise ConfigError(
            f"the model in {display_path(export)} gives no finite answer for {int((~is_finite).sum()):,} of "
            f"{len(answers):,} rows, the first of them row {int((~is_finite).int().argmax()) + 1}; correct the rows "
            f"if their numbers are very large, else {_AGAIN}"
        )
    return answers


def _csv_text(frame: "pd.DataFrame") -> str:
    """A table as CSV. Where a cell has a carriage return all texts are in quotes: pandas would leave it bare."""
    text = frame.to_csv(index=False)
    return frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC) if "\r" in text else text


def _read(path: Path, encoder: Encoder, *, channels_last: bool) -> "tuple[pd.DataFrame, torch.Tensor, list[str]]":
    """The rows of a file, their examples `[S, *shape]`, and a line on each kind of cells to be doubted."""
    import pandas as pd

    if not path.is_file():
        raise ConfigError(f"there is no file {display_path(path)}; give rows as .csv or .parquet, or an array as .npy")
    if encoder.takes_rows and path.suffix != ARRAY:
        typed_frame = table.read(path, encoder.text_columns)
        examples = encoder.rows(typed_frame)
        is_csv = path.suffix == ".csv"
        frame = pd.read_csv(path, index_col=False, dtype=str, keep_default_na=False) if is_csv else table.read(path)
        notes = encoder.replaced_cells(typed_frame), encoder.far_numbers(typed_frame)
        return frame.rename(columns=str), examples, [*filter(None, notes)]
    examples = torch.from_numpy(_as_stored(_read_array(path), encoder, channels_last=channels_last))
    return pd.DataFrame({"example": np.arange(len(examples))}), examples, []


def _as_stored(array: np.ndarray, encoder: Encoder, *, channels_last: bool) -> np.ndarray:
    """Examples `[S, ...]` of a user's file in the form in which the run had them, as far as that is certain.

    Where they fit both as they are and with their last axis in front, they are as the file that was trained on.
    """
    if channels_last and array.ndim > 2 and (array.shape[-1], *array.shape[1:-1]) == encoder.shape:
        array = np.moveaxis(array, -1, 1)
    is_flat = array.ndim == 2 and array.shape[1] == prod(encoder.shape)
    if encoder.shape[0] == 1 and (is_flat or encoder.shape[1:] == array.shape[1:]):
        array = array.reshape(len(array), *encoder.shape)  # one channel, which is not in the file
    is_float = encoder.dtype == "float32" and array.dtype != np.uint8
    return np.ascontiguousarray(array.astype(np.float32) if is_float else array)


def _read_array(path: Path) -> np.ndarray:
    if path.suffix != ARRAY:
        raise ConfigError(f"the model takes an array of examples in a {ARRAY} file, got {path.name}; see its card")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # one shorter than its header says cannot be mapped
    except Exception as error:  # of many kinds, where the header is damaged
        raise ConfigError(f"{display_path(path)} cannot be read as an array: {first_line(error)}") from error
    if not isinstance(array, np.ndarray) or not array.ndim or array.dtype.kind not in "biuf" or not len(array):
        raise ConfigError(f"{display_path(path)} must hold an array of numbers, one example a row, but does not")
    if not np.isfinite(array).all():
        raise ConfigError(
            f"{display_path(path)} must hold finite numbers, but some are missing or infinite; fill them in"
        )
    return np.array(array, dtype=array.dtype.newbyteorder("="))
