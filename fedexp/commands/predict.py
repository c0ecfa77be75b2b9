"""Ask an exported model about new rows.

EXPORT is a folder that fedexp export wrote. ROWS is a table (.csv or .parquet) with the columns of the training table,
in any order; other columns are kept. For models of images, signals and the like it is a .npy file with an array of
examples, as x_test of your .npz file or as encoder.json says their shape and type. The answers are written as CSV: the
likeliest class and the probability of each, or the numbers. Missing cells, texts that training did not have and numbers
out of their range are told by column. Nothing in EXPORT is run.
"""

from pathlib import Path

from fedexp.commands.arguments.parsing import Parser, complete_folder, folder_path
from fedexp.commands.arguments.trust_flag import add_trust_flag, trust_of
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.untrusted import refuse_special_files
from fedexp.process import logs
from fedexp.process.terminal import print_text


def build_parser() -> Parser:
    """Declares the exported folder, the rows and the answers."""
    parser = Parser("predict EXPORT ROWS --to FILE.csv [--overwrite]", __doc__)
    parser.words("places", lambda _, word: complete_folder(word))
    parser.add_flag("the answers", "--to", type=folder_path, values=complete_folder, metavar="FILE.csv")
    parser.add_flag("replace FILE.csv if it is there", "--overwrite", action="store_true")
    add_trust_flag(parser)
    return parser


def act(words: list[str]) -> int:
    """Writes the answers and says how many there are."""
    arguments = build_parser().read(words)
    if len(arguments.places) != 2 or arguments.to is None:
        raise ConfigError(
            "predict needs an exported folder, rows and --to, e.g. fedexp predict my_model rows.csv --to answers.csv"
        )
    export, rows = map(Path, arguments.places)
    if not export.is_dir():
        raise ConfigError(
            f"there is no folder {export}; fedexp export makes one: fedexp export outputs/latest --to {export}"
        )
    refuse_special_files(export)
    with logs.restore_logging():
        logs.silence()
        from fedexp.predict.predict import predict

        count, notes = predict(export, rows, arguments.to, trust_of(arguments), overwrite=arguments.overwrite)
    print_text(f"{count:,} answers in {display_path(arguments.to)}\n")
    print_text("".join(f"note  {note}\n" for note in notes))
    return 0
