"""Writes the folder that a user takes home: weights, network, encoder, card. It is whole, or not there."""

import json
from pathlib import Path

import torch
from torch import nn

from fedexp.config import saved_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError, first_line
from fedexp.core.join_first import join_first
from fedexp.export import card, encoder, onnx
from fedexp.export.network_source import SourceError, load_source, network_source, plain_entries
from fedexp.export.trained_model import Client, TrainedModel, load_trained
from fedexp.files.atomic import display_path, publish, scratch_path
from fedexp.files.safetensors import as_safetensors
from fedexp.files.unwritable import explain_unwritable
from fedexp.report.pages.write_page import write_page

WEIGHTS, SAFETENSORS, SOURCE = "model.pt", "model.safetensors", "model.py"


def export(
    folder: Path,
    target: Path,
    number: int | None = None,
    client: Client | None = None,
    *,
    as_onnx: bool = False,
    trust: Trust = NO_TRUST,
) -> tuple[dict[str, str], str]:
    """Exports the model of a run folder, after round `number` and of one `client` if given, into a new folder.

    Returns: the names of its files with what each holds, and a line on rounds that the model does not know; empty if
        it knows all, or `number` was given.

    Raises:
        ConfigError: as `load_trained`; or the target exists, or the network cannot be written as asked.
    """
    refuse_target(target)
    if as_onnx:
        onnx.demand_packages()
    trained = load_trained(folder, number, client, trust)
    with explain_unwritable(target, "--to"), scratch_path(target) as part:
        part.mkdir()
        files = _write_files(trained, part, as_onnx=as_onnx)
        publish(part, target)
    return files, "" if number else _describe_missing_rounds(trained)


def _describe_missing_rounds(trained: TrainedModel) -> str:
    last, damaged = trained.record.finished_rounds, trained.record.damaged
    if trained.round == last:
        return ""
    reason = f"{join_first([*map(display_path, damaged)], 3)} cannot be read" if damaged else "no later state is there"
    return f"the model is that after round {trained.round} of the {last} in metrics.csv, since {reason}"


def _write_files(trained: TrainedModel, folder: Path, *, as_onnx: bool) -> dict[str, str]:
    """Writes all files into an empty folder; returns their names, with what each holds."""
    source, entries, obstacle = _source_and_entries(trained)
    torch.save(entries, folder / WEIGHTS)
    (folder / SAFETENSORS).write_bytes(as_safetensors(entries))
    _write_json(folder / encoder.NAME, trained.encoder.as_json())
    config = saved_config.read_shared(trained.record.folder, with_seed=not trained.draws_noise)
    saved_config.write(folder, config)
    files = {
        WEIGHTS: "the weights, a plain state dict (`torch.load(..., weights_only=True)`)",
        SAFETENSORS: "the same weights for other frameworks",
        encoder.NAME: "how examples become inputs, and the names of the answers",
        saved_config.NAME: "the config of the run",
    }
    if source:
        (folder / SOURCE).write_text(source, encoding="utf-8")
        files[SOURCE] = "the network in plain PyTorch"
    if as_onnx:
        onnx.write_onnx(trained.network, trained.encoder.inputs(trained.examples), folder / onnx.NAME)
        files[onnx.NAME] = "network and weights in one file; it takes inputs, as the encoder makes them"
    write_page(folder / card.NAME, card.card(trained, files, obstacle))
    return {card.NAME: "what this is, and how it is used", **files}


def refuse_target(target: Path) -> None:
    """Raises ConfigError unless the folder is new or empty."""
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise ConfigError(f"--to must be a new folder, but {display_path(target)} is there; give another, or remove it")


def _source_and_entries(trained: TrainedModel) -> tuple[str, dict[str, torch.Tensor], str]:
    """The network's source, its entries as the source names them, and why there is no source, if there is none."""
    network, inputs = trained.network, trained.encoder.inputs(trained.examples)
    try:
        source = network_source(network)
        copy = load_source(source)
        entries = plain_entries(network, copy)
        copy.load_state_dict(entries)
        if _agree(network, copy, inputs):
            return source, entries, ""
        obstacle = "its outputs would be others"
    except (SourceError, RuntimeError, SyntaxError, TypeError, AttributeError) as error:
        obstacle = first_line(error)
    return "", {name: entry.detach().cpu().contiguous() for name, entry in network.state_dict().items()}, obstacle


def _agree(network: nn.Module, copy: nn.Module, inputs: torch.Tensor) -> bool:
    with torch.no_grad():
        return torch.allclose(network(inputs), copy(inputs), rtol=1e-5, atol=1e-6)


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
