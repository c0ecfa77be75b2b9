"""Check or download the files of datasets."""

from argparse import Namespace

from fedexp.commands.parsing import Parser, below, folder
from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError, nearest

VERBS = ("check", "download")
FOLDER = "data_dir="  # as fedexp run spells it
KEY = "dataset."  # before the keys of a dataset, likewise


def parser() -> Parser:
    """Declares what to do, and with which datasets."""
    made = Parser("data check|download NAME... [data_dir=DIR] [dataset.KEY=VALUE...]", __doc__)
    made.words("words", _following)
    told = "where datasets lie (default: the variable FEDEXP_DATA, else the cache of the user)"
    made.flag(told, "--data-dir", type=folder, values=below, metavar="DIR")
    return made


def act(words: list[str]) -> int:
    """Checks or downloads the named datasets and returns the exit code."""
    asked = parser().read([f"--data-dir={word[len(FOLDER) :]}" if word.startswith(FOLDER) else word for word in words])
    if not asked.words:
        raise ConfigError("data needs check or download, and dataset names; e.g. fedexp data check mnist")
    verb, *rest = asked.words
    if verb not in VERBS:
        raise ConfigError(f"data must be followed by check or download, got {verb}; {nearest(verb, VERBS)}")
    names = [word for word in rest if not word.startswith(KEY)]
    known = catalog.options(conf_dir(), "dataset")
    for name in names:
        if name not in known:
            raise ConfigError(f"unknown dataset {name}; {nearest(name, known)}")
    if not names:
        raise ConfigError(f"data {verb} needs dataset names; known: {', '.join(known)}")
    keys = _keys([word for word in rest if word.startswith(KEY)], names)
    from fedexp.commands.datasets import check, download
    from fedexp.data import store

    return (check if verb == "check" else download)(names, asked.data_dir or store.data_root(), keys=keys)


def _keys(words: list[str], names: list[str]) -> dict[str, object]:
    """The values that words like `dataset.name=KMNIST` give to keys of the one dataset that is named."""
    import yaml

    if words and len(names) > 1:
        raise ConfigError(f"{words[0]} must be given with one dataset, got {' and '.join(names)}; ask for each alone")
    found: dict[str, object] = {}
    for word in words:
        key, is_given, value = word.removeprefix(KEY).partition("=")
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[key] = value
        if not is_given:
            raise ConfigError(f"{word} must be followed by a value; set {word}=...")
    return found


def _following(asked: Namespace, _: str) -> list[str]:
    names = [name for name in catalog.options(conf_dir(), "dataset") if name not in asked.words]
    return [*names, FOLDER] if asked.words else list(VERBS)
