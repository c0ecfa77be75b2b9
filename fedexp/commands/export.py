"""Export the trained model of a run.

DIR becomes a folder with the weights (model.pt, a plain state dict, and model.safetensors), the network in plain
PyTorch (model.py), how examples become inputs (encoder.json: columns, categories, means; pixels; vocabulary), and a
card (card.md) with the data, scores, privacy promise, and the lines that load the model without fedexp. Then
fedexp predict asks it about new rows. Without --round it is the newest saved state. With --client it is the model that
this client uses: its cluster's, with what it keeps for itself. K is the number of a client, or its name.
"""

from pathlib import Path

from fedexp.commands.arguments import candidates
from fedexp.commands.arguments.parsing import Parser, complete_folder, folder_path, integer_at_least
from fedexp.commands.arguments.trust_flag import add_trust_flag, trust_of
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.untrusted import refuse_special_files
from fedexp.process import logs
from fedexp.process.terminal import print_text
from fedexp.run import folders


def build_parser() -> Parser:
    """Declares the run folder and what is taken of it."""
    parser = Parser("export RUN --to DIR [--round N] [--client K] [--onnx]", __doc__)
    parser.words("places", lambda _, word: candidates.complete_run_folder(word))
    parser.add_flag("the new folder", "--to", type=folder_path, values=complete_folder, metavar="DIR")
    parser.add_flag(
        "the model after this round (the newest saved one)", "--round", type=integer_at_least(1), metavar="N"
    )
    parser.add_flag("the model that this client uses, by its number or name", "--client", metavar="K")
    parser.add_flag("write model.onnx, too; needs fedexp[onnx]", "--onnx", action="store_true")
    add_trust_flag(parser)
    return parser


def act(words: list[str]) -> int:
    """Exports a model and names the files."""
    arguments = build_parser().read(words)
    if len(arguments.places) != 1 or arguments.to is None:
        raise ConfigError("export needs a run folder and --to, e.g. fedexp export outputs/latest --to my_model")
    folder = Path(arguments.places[0])
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; export needs a run folder, e.g. outputs/latest")
    if folders.is_sweep(folder) or folders.is_search(folder):
        raise ConfigError(f"{display_path(folder)} holds several runs; give one of them, e.g. {display_path(folder)}/0")
    folders.refuse_folder_of_runs(folder, "fedexp export")
    refuse_special_files(folder)
    with logs.restore_logging():
        logs.silence()
        from fedexp.export.export import SOURCE, export

        files, missing_rounds = export(
            folder, arguments.to, arguments.round, arguments.client, as_onnx=arguments.onnx, trust=trust_of(arguments)
        )
    width = max(map(len, files))
    lines = [f"  {name:{width}}  {text.replace('`', '')}" for name, text in files.items()]
    if missing_rounds:
        lines.append(f"note  {missing_rounds}")
    if SOURCE not in files:
        lines.append(f"note  no {SOURCE}: the card says why, and how the network is made then")
    print_text("\n".join([display_path(arguments.to), *lines, ""]))
    return 0
