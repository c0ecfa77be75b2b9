"""Check or download the files of datasets."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.commands.arguments.parsing import Parser, complete_folder, folder_path
from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.core.part import build
from fedexp.process.terminal import print_text

if TYPE_CHECKING:
    from fedexp.parts.dataset.contract import Dataset

VERBS = ("check", "download")
FOLDER = "data_dir="  # as fedexp run spells it
KEY = "dataset."  # before the keys of a dataset, likewise


def build_parser() -> Parser:
    """Declares what to do, and with which datasets."""
    parser = Parser("data check|download NAME... [data_dir=DIR] [dataset.KEY=VALUE...]", __doc__)
    parser.words("words", _completions)
    help_text = "where datasets lie (default: the variable FEDEXP_DATA, else the cache of the user)"
    parser.add_flag(help_text, "--data-dir", type=folder_path, values=complete_folder, metavar="DIR")
    return parser


def act(words: list[str]) -> int:
    """Checks or downloads the named datasets and returns the exit code."""
    arguments = build_parser().read(
        [f"--data-dir={word[len(FOLDER) :]}" if word.startswith(FOLDER) else word for word in words]
    )
    if not arguments.words:
        raise ConfigError("data needs check or download, and dataset names; e.g. fedexp data check mnist")
    verb, *operands = arguments.words
    if verb not in VERBS:
        raise ConfigError(f"data must be followed by check or download, got {verb}; {did_you_mean(verb, VERBS)}")
    names = [word for word in operands if not word.startswith(KEY)]
    available = catalog.options(conf_dir(), "dataset")
    for name in names:
        if name not in available:
            raise ConfigError(f"unknown dataset {name}; {did_you_mean(name, available)}")
    if not names:
        raise ConfigError(f"data {verb} needs dataset names; known: {', '.join(available)}")
    keys = _keys([word for word in operands if word.startswith(KEY)], names)
    from fedexp.data import store

    datasets = {name: find_dataset(name, keys) for name in names}
    return check_files(verb, datasets, arguments.data_dir or store.data_root())


def find_dataset(name: str, keys: Mapping[str, object]) -> "Dataset":
    """The dataset of that name with these keys, and its defaults for all others but those that follow a run's keys."""
    option_keys = catalog.part(conf_dir(), "dataset", name)
    defaults = {key: value for key, value in option_keys.items() if not str(value).startswith("${")}
    return build({**defaults, **keys}, "dataset")


def check_files(verb: str, datasets: "Mapping[str, Dataset]", directory: Path) -> int:
    """Compares the files of datasets with their checksums, after fetching what is absent or damaged to `download` them.

    Prints a line for each file; returns exit code 0, or 2 where something is not right.
    """
    code = 0
    for name, dataset in datasets.items():
        try:
            (dataset.download if verb == "download" else dataset.require)(directory)
            for line in dataset.verify(directory) or ["needs no files"]:
                _write_line(f"{name}: {line}")
        except (ConfigError, OSError) as error:
            _write_line(f"{name}: {error}")
            code = 2
    return code


def _write_line(text: str) -> None:
    print_text(f"{text}\n")


def _keys(words: list[str], names: list[str]) -> dict[str, object]:
    """The values that words like `dataset.name=KMNIST` give to keys of the one dataset that is named."""
    import yaml

    if words and len(names) > 1:
        raise ConfigError(f"{words[0]} must be given with one dataset, got {' and '.join(names)}; ask for each alone")
    values: dict[str, object] = {}
    for word in words:
        key, is_given, value = word.removeprefix(KEY).partition("=")
        try:
            values[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            values[key] = value
        if not is_given:
            raise ConfigError(f"{word} must be followed by a value; set {word}=...")
    return values


def _completions(arguments: Namespace, _: str) -> list[str]:
    names = [name for name in catalog.options(conf_dir(), "dataset") if name not in arguments.words]
    return [*names, FOLDER] if arguments.words else list(VERBS)
