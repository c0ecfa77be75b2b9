"""`fedexp data check|download NAME...`: checks the files of datasets, and downloads them."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.core.part import build
from fedexp.parts.dataset.contract import Dataset

Say = Callable[[str], object]
Keys = Mapping[str, object]  # values for keys of the named dataset


def _write_line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def check(names: list[str], directory: Path, say: Say = _write_line, keys: Keys | None = None) -> int:
    """Compares the files of the named datasets with their checksums; exit code 0, or 2 where one is not right."""

    def lines(dataset: Dataset) -> list[str]:
        dataset.require(directory)
        return dataset.verify(directory) or ["needs no files"]

    return _each({name: find_dataset(name, keys or {}) for name in names}, lines, say)


def download(names: list[str], directory: Path, say: Say = _write_line, keys: Keys | None = None) -> int:
    """Fetches what is absent or damaged of the named datasets; exit code 0, or 2 where that failed."""

    def lines(dataset: Dataset) -> list[str]:
        dataset.download(directory)
        return dataset.verify(directory) or ["needs no files"]

    return _each({name: find_dataset(name, keys or {}) for name in names}, lines, say)


def _each(datasets: Mapping[str, Dataset], lines: Callable[[Dataset], list[str]], say: Say) -> int:
    code = 0
    for name, dataset in datasets.items():
        try:
            for line in lines(dataset):
                say(f"{name}: {line}")
        except (ConfigError, OSError) as error:
            say(f"{name}: {error}")
            code = 2
    return code


def dataset_names() -> list[str]:
    """The names of the datasets, as `dataset=` spells them."""
    return catalog.options(conf_dir(), "dataset")


def find_dataset(name: str, keys: Keys | None = None) -> Dataset:
    """The dataset of that name, with its defaults for all other keys."""
    if name not in dataset_names():
        raise ConfigError(f"there is no dataset {name}; {did_you_mean(name, dataset_names())}")
    option_keys = catalog.part(conf_dir(), "dataset", name)
    defaults = {
        key: value for key, value in option_keys.items() if not str(value).startswith("${")
    }  # those follow a run's keys
    return build({**defaults, **(keys or {})}, "dataset")
