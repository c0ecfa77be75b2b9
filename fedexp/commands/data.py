"""`fedexp data check|download NAME... [data_dir=DIR]`: the words read, the work left to `fedexp.commands.datasets`."""

from pathlib import Path

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError, nearest

VERBS = ("check", "download")


def act(words: list[str]) -> int:
    """Checks or downloads the named datasets and returns the exit code."""
    verb, names, folder = read(words)
    from fedexp.commands.datasets import check, download
    from fedexp.data import store

    directory = folder or store.data_root()
    return check(names, directory) if verb == "check" else download(names, directory)


def read(words: list[str]) -> tuple[str, list[str], Path | None]:
    """Splits the words into verb, dataset names and folder."""
    if not words:
        raise ConfigError("data needs check or download, and dataset names; e.g. fedexp data check mnist")
    verb, *rest = words
    if verb not in VERBS:
        raise ConfigError(f"data must be followed by check or download, got {verb}; {nearest(verb, VERBS)}")
    names, folder = _without_folder(rest)
    known = catalog.options(conf_dir(), "dataset")
    for name in names:
        if name not in known:
            raise ConfigError(f"unknown dataset {name}; {nearest(name, known)}")
    if not names:
        raise ConfigError(f"data {verb} needs dataset names; known: {', '.join(known)}")
    return verb, names, folder


def _without_folder(words: list[str]) -> tuple[list[str], Path | None]:
    names: list[str] = []
    folder: str | None = None
    left = iter(words)
    for word in left:
        key, equal, value = word.partition("=")
        if key not in ("data_dir", "--data-dir"):
            names.append(word)
            continue
        folder = value if equal else next(left, "")
        if not folder:
            raise ConfigError(f"{key} needs a folder; write data_dir=DIR")
    return names, Path(folder).expanduser() if folder else None
