"""Answers of an exported model for new examples: rows of a table, or an array of examples.

The network is built by fedexp from the folder's config; `model.py` is never run.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from fedexp.config.saved_config import read_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError, first_line
from fedexp.core.part import build
from fedexp.data import table
from fedexp.export.encoder import Encoder, read_encoder
from fedexp.export.entries import set_entries
from fedexp.export.export import WEIGHTS
from fedexp.export.trained_model import join_layers
from fedexp.files.atomic import display_path, write_atomically
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.refit import read_weights

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 1024  # examples at once
ARRAY = ".npy"


def predict(export: Path, rows: Path, target: Path, trust: Trust = NO_TRUST) -> int:
    """Writes a CSV file with the answers of the model in the folder `export` for every row; returns how many.

    Rows of a table keep their columns, and the answers stand behind them.

    Raises:
        ConfigError: the folder, the rows or the target are not what they must be.
    """
    if target.is_dir() or target.suffix != ".csv":
        raise ConfigError(f"--to must name a file that ends in .csv, got {display_path(target)}")
    if target.resolve() == rows.resolve():
        raise ConfigError(f"--to must be another file than the rows, got {display_path(target)} for both")
    encoder = read_encoder(export)
    frame, examples = _read(rows, encoder)
    network = load_network(export, encoder, trust)
    answers = encoder.answer_columns(outputs(network, encoder, examples))
    if written := [name for name in answers if name in frame.columns]:
        raise ConfigError(f"the rows must not have a column {written[0]}, which is to be written; rename it")
    write_atomically(target, frame.assign(**answers).to_csv(index=False).encode())
    return len(frame)


def load_network(export: Path, encoder: Encoder, trust: Trust = NO_TRUST) -> nn.Module:
    """The network of an exported folder with its weights.

    Raises:
        ConfigError: the folder names modules that are not trusted, or its files do not fit together.
    """
    config = read_config(export, trust)
    facts = Facts(encoder.shape, len(encoder.answers), 1, None, encoder.targets, _vocabulary_size(encoder))
    features = build(config["features"], "features")
    network = join_layers(features, build(config["model"], "model"), facts)
    path = export / WEIGHTS
    return set_entries(network, read_weights(path), display_path(path))


def outputs(network: nn.Module, encoder: Encoder, examples: torch.Tensor) -> torch.Tensor:
    """The outputs `[S, K]` of the network for examples `[S, *shape]` in their stored form."""
    with torch.no_grad():
        return torch.cat([network(encoder.inputs(chunk)) for chunk in examples.split(CHUNK)])


def _vocabulary_size(encoder: Encoder) -> int:
    return len(encoder.vocabulary) if encoder.dtype == "int64" else 0


def _read(path: Path, encoder: Encoder) -> "tuple[pd.DataFrame, torch.Tensor]":
    """The rows of a file, and their examples `[S, *shape]`."""
    import pandas as pd

    if not path.is_file():
        raise ConfigError(f"there is no file {display_path(path)}; give rows as .csv or .parquet, or an array as .npy")
    if encoder.columns:
        frame = table.read(path)
        return frame, encoder.rows(frame)
    examples = torch.from_numpy(_read_array(path))
    return pd.DataFrame({"example": np.arange(len(examples))}), examples


def _read_array(path: Path) -> np.ndarray:
    if path.suffix != ARRAY:
        raise ConfigError(f"the model takes an array of examples in a {ARRAY} file, got {path.name}; see its card")
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ConfigError(f"{display_path(path)} cannot be read as an array: {first_line(error)}") from error
